"""One log, many formats: the same episodes, names and policies come out of each."""

import dataclasses
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, feather, ipc, parquet
from support.d4morl import trajectory, write
from support.logs import COLUMNS, DISTRICTS, log_columns, log_episodes
from support.refusals import complaint
from support.training import parameters, tiny_run

from aetdice import Episode, Episodes, InputError, load_dataset, load_policy, load_run, resume
from aetdice.cli import main
from aetdice.data import FORMATS, Coding, Columns, coding_from, read_file
from aetdice.datasets import dataset_of
from aetdice.envs.mujoco import find_body

PARTS = ("observations", "actions", "rewards", "lengths", "terminated", "truncated")
TARGETS = {
    "csv": "log.csv",
    "parquet": "log.parquet",
    "arrow": "log.arrow",
    "npz": "log.npz",
    "minari": "test/log-v0",
    "store": "log",
}


@pytest.fixture(autouse=True)
def minari_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))


def same(one: Episodes, other: Episodes) -> bool:
    return (one.sha256, one.objectives, one.coding, one.ends) == (
        other.sha256, other.objectives, other.coding, other.ends
    )  # fmt: skip


def written(tmp_path, name, episodes):
    """The place of a dataset in a format."""
    place = TARGETS[name] if name == "minari" else str(tmp_path / TARGETS[name])
    FORMATS[name].write(Path(place), episodes)
    return place


def test_every_format_is_tested():
    assert {*TARGETS, "d4morl"} == set(FORMATS)


@pytest.mark.parametrize("name", TARGETS)
def test_what_a_format_writes_it_reads(name, tmp_path):
    log = log_episodes()
    assert same(load_dataset(written(tmp_path, name, log)), log)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("kind", ["continuous", "discrete"])
def test_plain_episodes_come_out_of_every_format_alike(name, kind, tmp_path):
    rng = np.random.default_rng(1)
    actions = [rng.random((n, 2)) if kind == "continuous" else rng.integers(0, 3, n) for n in (1, 4, 2)]
    plain = Episodes.from_list(
        [
            Episode(rng.normal(size=(len(a) + 1, 2)), a, rng.random((len(a), 2)), bool(i), not i)
            for i, a in enumerate(actions)
        ],
        ["speed", "energy"],
    )
    wanted = load_dataset(written(tmp_path, "npz", plain))
    found = wanted if name == "npz" else load_dataset(written(tmp_path, name, plain))
    assert found.objectives == ("speed", "energy")
    for part in PARTS:
        np.testing.assert_array_equal(getattr(found, part), getattr(wanted, part))
        assert getattr(found, part).dtype == getattr(wanted, part).dtype
    np.testing.assert_array_equal(found.observations, plain.observations.astype(np.float32))


TABLES = {
    "arrow": pa.table,
    "pandas": pd.DataFrame,
    "pandas categories": lambda log: pd.DataFrame(log).astype({"send": "category", "district": "category"}),
    "polars": pl.DataFrame,
    "polars categories": lambda log: pl.DataFrame(log).cast({"send": pl.Categorical}),
}


@pytest.mark.parametrize("kind", TABLES)
def test_tables_and_files_are_the_same(kind, tmp_path):
    log = log_columns()
    found = load_dataset(TABLES[kind](log), columns=COLUMNS)
    csv.write_csv(pa.table(log), tmp_path / "log.csv")
    parquet.write_table(pa.table(log), tmp_path / "log.parquet")
    feather.write_feather(pa.table(log), str(tmp_path / "log.feather"), compression="zstd")
    with ipc.new_stream(tmp_path / "stream.arrow", pa.table(log).schema) as file:
        file.write_table(pa.table(log), max_chunksize=50)
    for file in ("log.csv", "log.parquet", "log.feather", "stream.arrow"):
        assert same(load_dataset(tmp_path / file, columns=COLUMNS), found)
    assert found.objectives == ("served", "waited")
    assert found.origin is None


@pytest.mark.trains
def test_formats_train_to_identical_parameters(tmp_path):
    log = log_episodes()
    wanted = parameters(tiny_run(data=load_dataset(pd.DataFrame(log_columns()), columns=COLUMNS)))
    for name in TARGETS:
        found = parameters(tiny_run(data=load_dataset(written(tmp_path, name, log))))
        assert all(map(np.array_equal, found, wanted)), name


@pytest.mark.trains
def test_a_policy_is_told_names_and_answers_with_them(tmp_path):
    csv.write_csv(pa.table(log_columns()), tmp_path / "log.csv")
    data = load_dataset(tmp_path / "log.csv", columns=COLUMNS)
    run = tiny_run(data=data, out=tmp_path / "run")
    policy = load_policy(tmp_path / "run" / "policy-0.npz")
    assert policy.coding == data.coding
    said = []
    for form in ([0.5, "north"], {"district": "north", "queue": 0.5}):
        policy.reset(seed=3)
        said.append(policy.act(form))
        policy.observe([1, 2])
    assert said[0] == said[1]
    assert said[0] in ("go", "stay")
    many = policy.vectorised(3, seed=0).act([[0.1, "west"], [0.2, "south"], [0.3, "north"]])
    assert set(many) <= {"go", "stay"}
    policy.reset()
    with pytest.raises(
        InputError, match="'district' is 'east', which the data never had; known: north, south"
    ):
        policy.act([0.5, "east"])
    with pytest.raises(InputError, match="the observation has no 'queue'; it needs queue, district"):
        policy.act({"district": "north"})
    with pytest.raises(InputError, match="'queue' is a number, not 'north'"):
        policy.act(["north", "north"])
    with pytest.raises(InputError, match="an observation has 2 entries"):
        policy.act([0.5])
    assert load_run(tmp_path / "run").request["dataset"]["ends"] == data.ends
    again = resume(tmp_path / "run", progress=False)
    assert all(map(np.array_equal, parameters(again), parameters(run)))
    (tmp_path / "log.csv").write_text((tmp_path / "log.csv").read_text().replace("0.25", "0.5"))
    with pytest.raises(InputError, match=r"has changed since it was begun: .*log\.csv"):
        resume(tmp_path / "run", progress=False)


# What is decided.


def table(text: str) -> pa.Table:
    lines = [line.split() for line in text.strip().splitlines()]
    raw = "\n".join(",".join("" if cell == "." else cell for cell in line) for line in lines)
    return csv.read_csv(pa.BufferReader(raw.encode()))


def test_columns_are_guessed_by_name_and_shown():
    found = load_dataset(table("episode t obs_x obs_y action reward_a reward_b done\n0 0 .5 1 1 2 3 1"))
    assert found.notes[0] == (
        "columns: episode=episode step=t observations=obs_x,obs_y actions=action rewards=reward_a,reward_b "
        "terminated=done"
    )
    assert found.objectives == ("a", "b")
    assert [column.name for column in found.coding.observations] == ["x", "y"]


def test_columns_without_a_role_are_observations_unless_some_are_named_so():
    found = load_dataset(table("episode wind action reward\n0 0.5 1 2"))
    assert [column.name for column in found.coding.observations] == ["wind"]
    found = load_dataset(table("episode wind obs_x action reward\n0 0.5 3 1 2"))
    assert [column.name for column in found.coding.observations] == ["x"]
    assert "columns not used: wind" in found.notes


def test_columns_come_from_words_toml_and_patterns(tmp_path):
    (tmp_path / "c.toml").write_text(
        'episode = "trip"\nobservations = ["s*"]\nrewards = "gain"\nactions = "a"\n'
    )
    one = Columns.read([str(tmp_path / "c.toml")])
    assert one == Columns.read(["episode=trip", "observations=s*", "rewards=gain", "actions=a"])
    full = one.guessed(["trip", "speed", "size", "a", "gain"])
    assert full.observations == ("speed", "size")
    assert Columns.from_record(full.settled()).guessed(["trip", "speed", "size", "a", "gain"]) == full


def test_ignored_columns_are_not_read():
    log = table("episode wind taken_at action reward\n0 0.5 2026-01-01 1 2\n0 0.6 2026-01-02 0 2")
    with pytest.raises(InputError, match=r"column 'taken_at' holds times .*--columns ignored=taken_at"):
        load_dataset(log)
    found = load_dataset(log, columns={"ignored": "taken_*"})
    assert [column.name for column in found.coding.observations] == ["wind"]
    assert "columns not used: taken_at" in found.notes
    again = Columns(ignored=("taken_at",)).guessed(["wind", "taken_at", "a", "r", "ep"])
    assert Columns.from_record(again.settled()) == dataclasses.replace(
        again, step="-", terminated="-", truncated="-", next_observations=("-",)
    )
    with pytest.raises(InputError, match="column 'wind' is given as observations and as ignored"):
        load_dataset(log, columns={"observations": "wind", "ignored": ["wind"]})
    with pytest.raises(InputError, match=r"there is no column 'rain' \(ignored\)"):
        load_dataset(log, columns={"ignored": ["rain"]})


def test_rows_without_an_episode_are_one_only_if_that_is_said():
    log = table("wind action reward\n0.5 1 2\n0.6 0 2")
    with pytest.raises(InputError, match=r"there is no column for episode; .* say --columns episode=NAME"):
        load_dataset(log)
    assert load_dataset(log, columns={"episode": "-"}).steps == 2


WHOLE = "episode obs action reward\n0 .5 {} 1\n0 .5 {} 1\n0 .1 {} 1"


@pytest.mark.parametrize(
    ("cells", "actions", "meanings", "words"),
    [
        (("0.0", "2.0", "1.0"), [0, 2, 1], None, "3 classes, 0 to 2 (whole numbers, stored as floats)"),
        (("0", "2", "1"), [0, 2, 1], None, "3 classes, 0 to 2"),
        (("-1", "1", "0"), [0, 2, 1], [(-1,), (0,), (1,)], "3 classes: -1, 0, 1"),
        (("10", "30", "10"), [0, 1, 0], None, None),
        (("b", "a", "b"), [1, 0, 1], [("a",), ("b",)], "2 classes: a, b"),
        (("true", "false", "true"), [1, 0, 1], None, "2 classes, 0 to 1"),
    ],
)
def test_whole_numbers_and_words_are_classes(cells, actions, meanings, words):
    found = load_dataset(table(WHOLE.format(*cells)))
    if words is None:  # 10 and 30 may be numbered from 0 as they are
        assert found.actions.tolist() == [10, 30, 10]
        return
    assert found.actions.tolist() == actions
    assert found.coding.actions == (None if meanings is None else tuple(meanings))
    assert f"actions: {words}" in found.notes


def test_fractions_are_vectors_and_numbers_can_be_said_to_be():
    assert load_dataset(table(WHOLE.format("0.5", "1", "2"))).actions.shape == (3, 1)
    said = load_dataset(table(WHOLE.format("0", "1", "2")), columns={"numbers": "action"})
    assert said.actions.dtype == np.float32


def test_several_classes_become_one_of_the_combinations_that_occur():
    log = table("episode obs action_x action_y reward\n0 .5 a 1 1\n0 .5 b 3 1\n0 .5 a 3 1\n0 .1 a 1 1")
    found = load_dataset(log)
    assert found.coding.actions == (("a", 1), ("a", 3), ("b", 3))
    assert found.actions.tolist() == [0, 2, 1, 0]
    assert found.coding.decode(found.actions)[1] == ("b", 3)


def test_observations_are_discrete_if_all_are_small_whole_numbers():
    small = load_dataset(table("episode obs_a obs_b action reward\n0 3 x 1 1\n0 0 y 0 1"))
    assert small.observations.tolist() == [[3, 0], [0, 1], [0, 1]]
    mixed = load_dataset(table("episode obs_a obs_b action reward\n0 0.5 x 1 1\n0 0 y 0 1"))
    np.testing.assert_array_equal(mixed.observations[:2], np.float32([[0.5, 1, 0], [0, 0, 1]]))
    large = load_dataset(table("episode obs_a obs_b action reward\n0 3 900 1 1\n0 0 1 0 1"))
    assert large.observations.dtype == np.float32
    only = load_dataset(table("episode obs action reward\n0 499 1 1\n0 0 0 1"))
    assert only.observations.dtype == np.int64
    labels = load_dataset(
        table("episode obs_a obs_b action reward\n0 0.5 7 1 1\n0 0 900 0 1"), columns={"categories": "obs_b"}
    )
    assert labels.coding.observations[1].values == (7, 900)


def test_rule_for_the_last_observation():
    text = "episode obs action reward terminated\na 0.1 0 1 0\na 0.2 1 1 1\n" + "".join(
        f"{name} 0.{step + 3} 1 1 0\n"
        for name, steps in (("b", 3), ("c", 2), ("d", 1))
        for step in range(steps)
    )
    over = load_dataset(table(text), ends="shift")
    assert over.lengths.tolist() == [2, 3, 2, 1]
    np.testing.assert_allclose(over.observations[:3, 0], [0.1, 0.2, 0.2])
    cut = load_dataset(table(text), ends="recording")
    assert cut.lengths.tolist() == [2, 3, 1]  # c lost its last step, d all of it; b reached the horizon
    np.testing.assert_allclose(cut.observations[-2:, 0], [0.3, 0.4], rtol=1e-6)
    assert cut.notes[-1] == (
        "last observation: unknown in 2 cut recordings, whose last step is dropped; 1 episodes of one step "
        "are left out"
    )


def test_next_observations_give_the_last_one():
    found = load_dataset(table("episode obs action reward next_obs\n0 .1 1 1 .2\n0 .2 0 1 .3\n1 .4 0 1 .5"))
    np.testing.assert_allclose(found.observations[:, 0], [0.1, 0.2, 0.3, 0.4, 0.5], rtol=1e-6)


def test_without_an_episode_column_flags_tell_the_episodes_apart():
    found = load_dataset(table("obs action reward done\n.1 1 1 0\n.2 0 1 1\n.3 0 1 1\n.4 0 1 0\n.5 1 1 0"))
    assert found.lengths.tolist() == [2, 1, 2]


def test_flat_archives_are_read(tmp_path):
    rows = {"observations": np.arange(8.0).reshape(4, 2) / 3, "actions": np.array([0, 1, 1, 0])}
    ends = {"terminals": np.array([0, 1, 0, 0]), "timeouts": np.array([0, 0, 0, 1])}
    np.savez(tmp_path / "flat.npz", **rows, rewards=np.ones((4, 2)), **ends)
    found = load_dataset(tmp_path / "flat.npz")
    assert (found.lengths.tolist(), found.terminated.tolist()) == ([2, 2], [True, False])
    assert found.objectives == ("rewards_0", "rewards_1")


def test_d4morl_files_are_read_without_a_body(tmp_path):
    body = find_body("hopper")
    path = write(tmp_path / "hopper.pkl", [trajectory(body, 7), trajectory(body, 3, seed=1)])
    found = load_dataset(path, columns={"rewards": ["speed", "energy"]})
    assert (found.lengths.tolist(), found.objectives) == ([7, 3], ("speed", "energy"))
    assert found.actions.shape == (10, body.action_size)


# How they end.


@pytest.mark.parametrize(
    ("lengths", "ends", "words"),
    [
        ([4] * 10, "recording", "none is truncated before"),
        ([4] * 10 + [2], "recording", "taken for cut recordings (recording)"),
        ([1, 2, 3, 4] * 5, "shift", "taken for ends by design (shift): as cut recordings they would make"),
    ],
)
def test_ends_are_guessed_by_what_cut_recordings_would_weigh(lengths, ends, words):
    rows = [f"{index} {step} .5 1 1 1" for index, length in enumerate(lengths) for step in range(length + 1)]
    text = "episode step obs action reward truncated\n"
    cells = [
        row if int(row.split()[1]) < lengths[int(row.split()[0])] else row[:-5] + ". . ." for row in rows
    ]
    cells = [
        row
        if not row.endswith("1") or int(row.split()[1]) == lengths[int(row.split()[0])] - 1
        else row[:-1] + "0"
        for row in cells
    ]
    found = load_dataset(table(text + "\n".join(cells)))
    assert found.ends == ends
    assert any(words in note for note in found.notes)
    said = load_dataset(table(text + "\n".join(cells)), ends="shift")
    assert said.settled().terminated.all()
    assert not said.terminated.any()


def test_ends_are_kept_with_the_file(tmp_path):
    log = dataclasses.replace(log_episodes(), ends="recording")
    for name in set(TARGETS) - {"csv"}:
        assert load_dataset(written(tmp_path, name, log)).ends == "recording"
    assert read_file(tmp_path / "log.npz", ends="shift").ends == "shift"


# The coding.


def test_coding_travels_as_json():
    coding = log_episodes().coding
    assert coding_from(json.loads(json.dumps(coding.record()))) == coding
    assert coding.observations[1].values == tuple(DISTRICTS)
    for wrong in ({}, {**coding.record(), "observations": [{"name": 3, "values": None}]}):
        with pytest.raises(InputError, match="the record of a coding is not one"):
            coding_from(wrong)
    assert Coding((), False, ()).plain


def test_convert_writes_once(tmp_path, capsys):
    csv.write_csv(pa.table(log_columns()), tmp_path / "log.csv")
    arguments = ["convert", str(tmp_path / "log.csv"), str(tmp_path / "log.npz")]
    main([*arguments, "--columns", "actions=send", "rewards=served,waited"])
    assert "written: " in capsys.readouterr().out
    assert same(load_dataset(tmp_path / "log.npz"), load_dataset(tmp_path / "log.csv", columns=COLUMNS))
    with pytest.raises(SystemExit):
        main(arguments)
    assert "exists; delete it or choose another name" in capsys.readouterr().err


def test_types_that_a_csv_shows_late_are_seen(tmp_path):
    rows = [f"{index // 10},{index % 10},3,1,1.5" for index in range(100_000)]
    rows[-1] = rows[-1].replace(",3,1,", ",0.5,1,")
    (tmp_path / "log.csv").write_text("episode,step,obs,action,reward\n" + "\n".join(rows))
    found = load_dataset(tmp_path / "log.csv")
    assert found.observations.dtype == np.float32
    assert found.observations[-1, 0] == 0.5


def test_a_minari_folder_is_read_where_it_lies(tmp_path):
    log = log_episodes()
    written(tmp_path, "minari", log)
    (tmp_path / "minari" / "test" / "log-v0").rename(tmp_path / "moved")
    assert same(load_dataset(tmp_path / "moved"), log)


def test_missing_pyarrow_is_named(tmp_path, monkeypatch):
    (tmp_path / "log.csv").write_text("x\n1\n")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"pip install 'aetdice\[tables\]'"):
        load_dataset(tmp_path / "log.csv")


SHORT = (
    "--set network.hidden=8 dual.steps=4 dual.batch=8 extraction.steps=4 extraction.batch=8 dual.refit=none"
)


@pytest.mark.trains
def test_a_log_is_trained_on_from_the_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    csv.write_csv(pa.table(log_columns()), "log.csv")
    columns = ["--columns", "actions=send", "rewards=served,waited"]
    options = ["--ends", "shift", "--horizon", "9", "--objective", "esr", "--out", "run", *SHORT.split()]
    main(["train", "log.csv", *columns, *options])
    said = capsys.readouterr().out
    assert "actions: 2 classes: go, stay" in said
    assert "horizon: 9 steps" in said
    request = json.loads(Path("run/config.json").read_text())
    assert (request["horizon"], request["dataset"]["ends"]) == (9, "shift")
    assert request["dataset"]["origin"]["columns"]["rewards"] == ["served", "waited"]
    assert json.loads(Path("run/result.json").read_text())["score"] is None
    assert load_policy("run/policy-0.npz").coding is not None
    assert "which has no environment to act in" in complaint(capsys, "evaluate", "run")
    main(["resume", "run", "--json"])
    assert json.loads(capsys.readouterr().out)["objective"].startswith("ESR")


def test_an_environment_s_name_and_its_option_are_the_same():
    taxi = {"size": 3, "origins": ((0, 0), (2, 2)), "destinations": ((0, 1), (2, 1)), "start": (1, 1)}
    data = load_dataset("fair-taxi", episodes=5, horizon=5, **taxi)
    assert dataset_of(json.loads(json.dumps(data.origin))).sha256 == data.sha256


@pytest.mark.parametrize("index", ["", "Unnamed: 0", "__index_level_0__"])
def test_the_index_of_a_table_is_not_observed(index):
    """pandas writes it along unless it is told not to; as an observation it would be a row number."""
    names = [index, "episode", "step", "queue", "action", "reward"]
    assert Columns().guessed(names).observations == ("queue",)
    assert Columns().guessed(names).unused(names) == [index or "one without a name"]
    assert Columns(observations=(index, "queue")).guessed(names).observations == (index, "queue")
