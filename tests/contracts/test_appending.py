"""Shards of a store: appended whole or not at all, seen by readers as before or as after."""

import fcntl
import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_episodes import make, ragged

from aetdice.cli import main
from aetdice.data import Episode, Episodes, appending, load_episodes, save_episodes
from aetdice.data.appending import append_episodes
from aetdice.data.readers import read_file
from aetdice.errors import InputError

PARTS = ("observations", "actions", "rewards", "lengths", "terminated", "truncated")
KILLED = """
import os, sys
import numpy as np
from aetdice.data import Episode, appending
appending._replace_manifest = lambda *given: os._exit(9)
appending.append_episodes(sys.argv[1], [Episode(np.ones((2, 3)), [0], np.ones((1, 2)), True, False)])
"""


def assert_same(found, expected):
    assert found.objectives == expected.objectives
    for part in PARTS:
        np.testing.assert_array_equal(getattr(found, part), getattr(expected, part))
        assert getattr(found, part).dtype == getattr(expected, part).dtype


@given(ragged, st.integers(0, 3))
@settings(max_examples=5)
def test_a_store_of_shards_is_the_store_of_all_episodes(tmp_path_factory, given_episodes, cut):
    path = tmp_path_factory.mktemp("stores") / "store"
    first = min(1 + cut, len(given_episodes))
    save_episodes(path, given_episodes[:first])
    for episode in given_episodes[first:]:
        append_episodes(path, [episode])
    assert_same(load_episodes(path, verify=True), Episodes.from_list(given_episodes))
    assert {file.name for file in path.iterdir()} == {"manifest.json", *(f"{part}.npy" for part in PARTS)}


@pytest.fixture
def store(tmp_path):
    save_episodes(tmp_path / "store", [make(3), make(2)], objectives=("speed", "energy"), facts={"seed": 3})
    append_episodes(tmp_path / "store", [make(4), make(1)])
    append_episodes(tmp_path / "store", [make(2)])
    return tmp_path / "store"


EPISODES = [make(3), make(2), make(4), make(1), make(2)]


def test_appended_arrays_stay_on_disk(store):
    array = load_episodes(store).observations
    while not isinstance(array, np.memmap):
        array = array.base
    assert not array.flags.writeable


def test_what_was_mapped_stays_as_it_was(store):
    before = load_episodes(store)
    append_episodes(store, [make(5)])
    assert_same(before, Episodes.from_list(EPISODES, ("speed", "energy")))
    assert_same(load_episodes(store), Episodes.from_list([*EPISODES, make(5)], ("speed", "energy")))


# Faults.


def test_a_cut_or_missing_shard_is_named(store):
    entries = json.loads((store / "manifest.json").read_text())["arrays"]
    for part in PARTS:
        path = store / f"{part}.npy"
        content, first = path.read_bytes(), entries[part]["shards"][0]["bytes"]
        for damage, message in (
            (content[:-1], r"it has \d+ bytes instead of \d+, and so 1 of its 3 shards are not whole"),
            (content[:first], "2 of its 3 shards are not whole"),
            (content + b"0", f"it has {len(content) + 1} bytes"),
            (None, "it is missing"),
        ):
            path.unlink()
            if damage is not None:
                path.write_bytes(damage)
            with pytest.raises(InputError, match=rf"{part}.npy is damaged: .*{message}"):
                load_episodes(store, verify=False)
        path.write_bytes(content)


def test_a_changed_byte_is_found_in_its_shard(store):
    entries = json.loads((store / "manifest.json").read_text())["arrays"]
    for part in PARTS:
        path = store / f"{part}.npy"
        content = path.read_bytes()
        for index, end in enumerate(np.cumsum([shard["bytes"] for shard in entries[part]["shards"]])):
            path.write_bytes(content[: end - 1] + bytes([content[end - 1] ^ 1]) + content[end:])
            message = rf"{part}.npy is damaged: its SHA-256 of shard {index + 1} of 3"
            with pytest.raises(InputError, match=message):
                load_episodes(store)
        path.write_bytes(content)


def test_a_writer_killed_between_shard_and_manifest_has_done_nothing(store):
    command = [sys.executable, "-c", KILLED, str(store)]
    assert subprocess.run(command, check=False).returncode == 9
    assert (store / "rewards.npy").stat().st_size > 0
    assert list(store.glob(".shard-*"))
    expected = Episodes.from_list(EPISODES, ("speed", "energy"))
    assert_same(load_episodes(store, verify=True), expected)
    append_episodes(store, [make(1)])
    assert_same(
        load_episodes(store, verify=True), Episodes.from_list([*EPISODES, make(1)], expected.objectives)
    )
    assert not list(store.glob(".*"))


def test_a_writer_that_fails_leaves_the_store_as_it_was(store, monkeypatch):
    before = {file.name: file.read_bytes() for file in store.iterdir()}

    def no_space(*given):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(appending, "_replace_manifest", no_space)
    with pytest.raises(OSError, match="No space left"):
        append_episodes(store, [make(4)])
    assert {file.name: file.read_bytes() for file in store.iterdir()} == before


def test_only_one_writer_at_a_time(store):
    with (store / ".appending").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(InputError, match=r"another process is appending to .*store; wait"):
            append_episodes(store, [make(1)])
        assert len(load_episodes(store)) == 5  # readers need not wait
    append_episodes(store, [make(1)])
    assert len(load_episodes(store)) == 6


def test_a_reader_begun_before_a_writer_was_done_reads_again(store, monkeypatch):
    from aetdice.data import store as module

    check, rounds = module._check_file, []

    def late(path, entry):
        if not rounds:
            rounds.append(path)
            append_episodes(store, [make(3)])
        check(path, entry)

    monkeypatch.setattr(module, "_check_file", late)
    assert len(load_episodes(store)) == 6


def test_episodes_that_do_not_fit_are_refused(store):
    before = {file.name: file.read_bytes() for file in store.iterdir()}
    spoilt = make(2)
    spoilt.rewards[1, 0] = np.nan
    for episodes, message in (
        ([make(2, objectives=3)], r"rewards have shape \(3,\) per step, but \(2,\) in the store"),
        ([spoilt], "rewards must be finite, but episode 0, step 1, objective 'speed'"),
        ([], "needs at least one episode"),
        (Episodes.from_list([make(2)]), "has the objectives speed, energy, the new episodes r0, r1"),
        ([Episode(np.zeros((2, 3)), [0.5], [[0.0, 1.0]], True, False)], "actions are float64, but int64"),
    ):
        with pytest.raises(InputError, match=message):
            append_episodes(store, episodes)
    assert {file.name: file.read_bytes() for file in store.iterdir()} == before
    with pytest.raises(InputError, match="is not an episode store"):
        append_episodes(store.parent, [make(1)])


# Logs: in the store's coding.

LOG = """episode,load,weather,action,reward_a,terminated
{0},0.5,dry,go,1,0
{0},0.25,{1},{2},2,1
"""


def test_a_log_is_appended_in_the_coding_of_the_store(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    first, more, odd = (tmp_path / name for name in ("log.csv", "more.csv", "odd.csv"))
    rest = "2,0.75,fog,halt,0,1\n"
    first.write_text(LOG.format(1, "rain", "stop") + rest)
    more.write_text(LOG.format(3, "rain", "go"))
    odd.write_text(LOG.format(3, "snow", "go"))
    main(["convert", "log.csv", "store"])
    main(["convert", "more.csv", "store", "--append"])
    assert "appended to store: 1 episodes; it has 3 now" in capsys.readouterr().out
    both = tmp_path / "both.csv"
    both.write_text(LOG.format(1, "rain", "stop") + rest + LOG.format(3, "rain", "go").split("\n", 1)[1])
    found, expected = read_file(tmp_path / "store"), read_file(both)
    assert_same(found, expected)
    assert found.coding == expected.coding
    with pytest.raises(SystemExit) as ended:
        main(["convert", "odd.csv", "store", "--append"])
    assert ended.value.code == 2
    assert (
        "observation 'weather' is 'snow', which the store never had; known: dry, fog"
        in capsys.readouterr().err
    )
    assert len(read_file(tmp_path / "store")) == 3
