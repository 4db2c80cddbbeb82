"""The episode store: what goes in comes out, mapped from disk, whole or not at all."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_episodes import make, ragged

from aetdice.data import Episode, Episodes, augment
from aetdice.data.store import load_episodes, load_facts, save_episodes
from aetdice.errors import InputError
from aetdice.objectives import Identity

PARTS = ("observations", "actions", "rewards", "lengths", "terminated", "truncated")


@given(ragged, st.booleans())
def test_episodes_come_out_as_they_went_in(tmp_path_factory, given_episodes, streamed):
    path = tmp_path_factory.mktemp("stores") / "store"
    episodes = Episodes.from_list(given_episodes)
    save_episodes(path, iter(given_episodes) if streamed else episodes)
    for verify in (None, True, False):
        found = load_episodes(path, verify=verify)
        assert found.objectives == episodes.objectives
        for part in PARTS:
            np.testing.assert_array_equal(getattr(found, part), getattr(episodes, part))
            assert getattr(found, part).dtype == getattr(episodes, part).dtype


@pytest.fixture
def store(tmp_path):
    facts = {"seed": 3, "transforms": [{"kind": "min-max"}], "nested": {"β": [1, None, 0.5]}}
    save_episodes(tmp_path / "store", [make(3), make(2)], objectives=("speed", "energy"), facts=facts)
    return tmp_path / "store"


def test_facts_and_names_are_kept(store):
    assert load_facts(store) == {
        "seed": 3,
        "transforms": [{"kind": "min-max"}],
        "nested": {"β": [1, None, 0.5]},
    }
    assert load_episodes(store).objectives == ("speed", "energy")


def test_names_of_a_dataset_are_kept(tmp_path):
    save_episodes(tmp_path / "store", Episodes.from_list([make(2)], ["a", "b"]))
    assert load_episodes(tmp_path / "store").objectives == ("a", "b")


def test_arrays_stay_on_disk_and_cannot_be_written(store):
    episodes = load_episodes(store)
    for part in ("observations", "actions", "rewards"):
        array = getattr(episodes, part)
        base = array
        while getattr(base, "base", None) is not None and not isinstance(base, np.memmap):
            base = base.base
        assert isinstance(base, np.memmap)
        assert not array.flags.writeable


def test_mapped_episodes_augment_like_episodes_in_memory(store):
    mapped = load_episodes(store)
    inside = Episodes.from_list([make(3), make(2)])
    here, there = (augment(episodes, Identity(), 4) for episodes in (mapped, inside))
    np.testing.assert_array_equal(here.next_observations, there.next_observations)
    np.testing.assert_array_equal(here.transformed_rewards, there.transformed_rewards)


def test_arrays_are_plain_numpy_files(store):
    assert sorted(file.name for file in store.iterdir()) == sorted(
        ["manifest.json", *(f"{part}.npy" for part in PARTS)]
    )
    for part in PARTS:
        np.testing.assert_array_equal(
            np.load(store / f"{part}.npy", allow_pickle=False), getattr(load_episodes(store), part)
        )


def test_nothing_is_left_of_a_failed_write(tmp_path):
    def stops_half_way():
        yield make(3)
        raise RuntimeError("the collector failed")

    with pytest.raises(RuntimeError, match="the collector failed"):
        save_episodes(tmp_path / "store", stops_half_way())
    assert list(tmp_path.iterdir()) == []


def test_impossible_episodes_are_refused_before_the_store_appears(tmp_path):
    spoilt = make(3)
    spoilt.rewards[1, 0] = np.nan
    with pytest.raises(InputError, match="rewards must be finite, but episode 1, step 1, objective 'r0'"):
        save_episodes(tmp_path / "store", [make(2), spoilt])
    with pytest.raises(InputError, match="episode 1: rewards have shape"):
        save_episodes(tmp_path / "store", [make(2), make(2, objectives=3)])
    with pytest.raises(InputError, match="a dataset needs at least one episode"):
        save_episodes(tmp_path / "store", [])
    with pytest.raises(InputError, match="objectives has 1 entries, but the episodes need 2"):
        save_episodes(tmp_path / "store", [make(2)], objectives=["a"])
    with pytest.raises(InputError, match="the facts of a store must be JSON"):
        save_episodes(tmp_path / "store", [make(2)], facts={"value": float("nan")})
    with pytest.raises(InputError, match="must be numbers"):
        save_episodes(tmp_path / "store", [Episode([{}], [0], [[0.0]], True, False)])
    assert list(tmp_path.iterdir()) == []


def test_existing_store_is_not_overwritten(store):
    with pytest.raises(InputError, match="store exists; delete it or choose another name"):
        save_episodes(store, [make(1)])
    assert len(load_episodes(store)) == 2


# Damage.


@pytest.mark.parametrize("part", PARTS)
def test_missing_truncated_or_longer_array_is_named(store, part):
    path = store / f"{part}.npy"
    content = path.read_bytes()
    for damage, message in (
        (content[:-1], f"it has {len(content) - 1} bytes instead of {len(content)}"),
        (content + b"0", f"it has {len(content) + 1} bytes"),
        (None, "it is missing"),
    ):
        path.unlink()
        if damage is not None:
            path.write_bytes(damage)
        with pytest.raises(InputError, match=rf"{part}.npy is damaged: {message}.*copy or collect"):
            load_episodes(store, verify=False)


@pytest.mark.parametrize("part", PARTS)
def test_any_changed_byte_of_an_array_is_noticed(store, part):
    path = store / f"{part}.npy"
    content = path.read_bytes()
    for place in {*range(0, len(content), 7), len(content) - 1}:
        path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        with pytest.raises(InputError, match=f"{part}.npy is damaged"):
            load_episodes(store)
    path.write_bytes(content)
    load_episodes(store)


def test_any_changed_byte_of_the_manifest_is_noticed(store):
    path = store / "manifest.json"
    content = path.read_bytes()
    for place in range(0, len(content), 5):
        if content[place : place + 1].isspace():
            continue
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(InputError, match=r"manifest\.json"):
            load_episodes(store)


def test_other_version_is_refused(store):
    path = store / "manifest.json"
    content = json.loads(path.read_text(encoding="utf-8")) | {"version": 3}
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(InputError, match=r"has version 3, but this release reads versions up to 2"):
        load_episodes(store)


def test_array_of_objects_is_not_unpickled(store):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("unpickled",))

    path = store / "lengths.npy"
    with path.open("wb") as file:
        np.save(file, np.array([Trap(), Trap()], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"lengths\.npy is damaged"):
        load_episodes(store)


def test_folder_without_manifest_is_no_store(tmp_path):
    with pytest.raises(InputError, match=r"is not an episode store: it has no manifest\.json"):
        load_episodes(tmp_path)
    with pytest.raises(InputError, match="is not an episode store"):
        load_episodes(tmp_path / "nowhere")
