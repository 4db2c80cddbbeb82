"""Files that are none: each refused in one line with file, row and column, and nothing is written."""

import gzip
import json
import os
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from support.refusals import complaint

from aetdice import Episode, Episodes
from aetdice.data import save_episodes

HEAD = "episode step obs_x obs_y action reward_a reward_b terminated truncated"
GOOD = (
    "a 0 0.5 n 0 1 2 0 0",
    "a 1 0.7 s 1 1 2 1 0",
    "b 0 0.1 n 1 0 2 0 0",
    "b 1 0.2 n 0 0 1 0 1",
    "c 0 0.9 s 1 0 2 1 0",
)


def text(*rows: str, head: str = HEAD) -> str:
    return (
        "\n".join(",".join("" if cell == "." else cell for cell in row.split()) for row in (head, *rows))
        + "\n"
    )


def changed(row: int, column: str, value: str) -> str:
    """The good file with one cell changed."""
    cells = [line.split() for line in GOOD]
    cells[row][HEAD.split().index(column)] = value
    return text(*(" ".join(line) for line in cells))


def renamed(old: str, new: str) -> str:
    return text(*GOOD, head=HEAD.replace(old, new))


MANY = [f"a {step} 0.5 n {step % 2} 1 2 0 0" for step in range(400)]
CSV = {
    "nothing": ("", "not a table: Empty CSV file"),
    "a header only": (text(), "log.csv has no rows"),
    "a short row": (
        text(*GOOD[:2]) + "b,0\n",
        "line 4: not a table: CSV parse error: Expected 9 columns, got 2",
    ),
    "a long row": (text(GOOD[0] + " 7"), "line 2: not a table: CSV parse error: Expected 9 columns, got 10"),
    "a bad value after a cell of two lines and an empty line": (
        'episode,step,obs_x,action,reward\na,0,"first\nsecond",0,1\n\na,1,third,0,inf\n',
        "log.csv, line 5: reward column 'reward' is inf, but must be finite",
    ),
    "a short row after a cell of two lines": (
        'episode,step,obs_x,action,reward\na,0,"first\nsecond",0,1\na,1\n',
        "log.csv, line 4: not a table: CSV parse error",
    ),
    "binary": ("\x00\x01\x02\x03\x04", "not a table: CSV parse error"),
    "two columns of one name": (renamed("obs_y", "obs_x"), "two columns are called 'obs_x'; rename one"),
    "no reward": (renamed("reward_a", "x").replace("reward_b", "y"), "there is no column for rewards"),
    "no action": (renamed("action", "x"), "there is no column for actions"),
    "neither reward nor action nor episode": (
        "night,soil,valve,roses\na,dry,on,1\n",
        "there is no column for rewards and none for actions and none for episode; the columns are night, "
        "soil, valve, roses: say --columns rewards=NAME,NAME actions=NAME,NAME episode=NAME (episode=- if "
        "all rows are one episode)",
    ),
    "nothing that ends an episode": (
        text("0.5 0 1", head="obs action reward"),
        "there is no column for episode; the columns are obs, action, reward",
    ),
    "no observation": (
        text("a 0 1 1", head="episode step action reward"),
        "there is no column for observations; the columns are episode, step, action, reward",
    ),
    "a missing reward": (changed(1, "reward_b", "."), "line 3: reward column 'reward_b' is missing"),
    "a NaN reward": (changed(0, "reward_a", "nan"), "line 2: reward column 'reward_a' is missing"),
    "an infinite reward": (
        changed(0, "reward_a", "inf"),
        "line 2: reward column 'reward_a' is inf, but must be",
    ),
    "a word for a reward": (
        changed(2, "reward_a", "much"),
        "line 4: reward column 'reward_a' is 'much', not a number",
    ),
    "a missing observation": (
        changed(3, "obs_x", "."),
        "line 5 (episode 'b', step 1): observation 'x' is missing, but must be finite",
    ),
    "an infinite observation": (
        changed(1, "obs_x", "-inf"),
        "line 3 (episode 'a', step 1): observation 'x' is -inf, but must be finite",
    ),
    "an observation beyond float32": (
        changed(1, "obs_x", "1e200"),
        "line 3 (episode 'a', step 1): observation 'x'",
    ),
    "a missing category": (
        changed(2, "obs_y", "."),
        "line 4 (episode 'b', step 0): observation 'y' is missing",
    ),
    "a slip among numbers": (
        changed(2, "obs_x", "O.1"),
        "line 4 (episode 'b', step 0): column 'x' holds numbers, but here 'O.1'; correct it",
    ),
    "a missing action": (
        changed(2, "action", "."),
        "line 4 (episode 'b', step 0): action 'action' is missing",
    ),
    "an infinite action": (
        changed(2, "action", "inf"),
        "line 4 (episode 'b', step 0): action 'action' is inf",
    ),
    "a missing episode": (changed(4, "episode", "."), "line 6: episode column 'episode' is missing"),
    "a missing step": (changed(1, "step", "."), "line 3: step column 'step' is missing, not a whole number"),
    "a word for a step": (
        changed(1, "step", "one"),
        "line 3: step column 'step' is 'one', not a whole number",
    ),
    "half a step": (changed(1, "step", "0.5"), "line 3: step 0.5 comes after step 0: a step is missing"),
    "a repeated step": (changed(1, "step", "0"), "line 3: step 0 is repeated (aetdice doctor"),
    "a skipped step": (changed(1, "step", "2"), "line 3: step 2 comes after step 0: a step is missing"),
    "rows out of order": (
        text(GOOD[1], GOOD[0], *GOOD[2:]),
        "line 3: step 0 comes after step 1: the rows are out of order (aetdice doctor",
    ),
    "steps that go back": (
        text(*GOOD[:2], GOOD[3].replace("0 1", "0 0"), GOOD[2], GOOD[4]),
        "line 5: step 0 comes after step 1: the rows are out of order (aetdice doctor",
    ),
    "a late beginning": (
        changed(4, "step", "1"),
        "line 6: the episode begins with step 1, but the first one with 0",
    ),
    "an episode in two places": (
        text(*GOOD, GOOD[0]),
        "line 7: episode 'a' goes on here after other episodes; its rows must stand together",
    ),
    "terminated in mid-episode": (
        changed(0, "terminated", "1"),
        "line 2: terminated here, but the episode goes on",
    ),
    "truncated in mid-episode": (
        changed(2, "truncated", "1"),
        "line 4: truncated here, but the episode goes on",
    ),
    "a flag of two": (changed(1, "terminated", "2"), "line 3: column 'terminated' is 2, not 0 or 1"),
    "a word for a flag": (
        changed(1, "terminated", "yes"),
        "line 3: column 'terminated' is 'yes', not true or false",
    ),
    "a word among true and false": (
        text("a 0 0.5 n 0 1 2 False False", "a 1 0.7 s 1 1 2 maybe True"),
        "line 3: column 'terminated' is 'maybe', not true or false",
    ),
    "a word below a missing flag": (
        text("a 0 0.5 n 0 1 2 . .", "a 1 0.7 s 1 1 2 maybe True"),
        "line 3: column 'terminated' is 'maybe', not true or false",
    ),
    "a missing flag": (changed(2, "terminated", "."), "line 4: column 'terminated' is missing"),
    "an observation alone in mid-episode": (
        text("a 0 0.5 n . . . . .", *GOOD[1:]),
        "line 2: action and rewards are missing, which only the last row of an episode may do",
    ),
    "an episode without a step": (
        text(*GOOD, "d 0 0.5 n . . . . ."),
        "line 7: the episode has no step, only an observation",
    ),
    "actions of two kinds": (
        text("a 0 1 left 0.3 1", "a 1 2 right 0.4 1", head="episode step obs action_x action_y reward"),
        "actions are classes (x) and numbers (y) at once",
    ),
    "free text": (
        text(*(row.replace("n", f"w{i}") for i, row in enumerate(MANY))),
        "column 'y' has 400 different words, more than 256: text is not learned from; leave the column out "
        "(--columns ignored=y)",
    ),
    "times": (
        text("a 0 2026-01-01 1 1", head="episode step obs action reward"),
        "column 'obs' holds times (datetime64[D]): turn them into numbers, or leave the column out "
        "(--columns ignored=obs)",
    ),
    "decimal commas": (
        text("a;0;1,5;1;1", head="episode;step;obs;action;reward"),
        "line 2 (episode 'a', step 0): column 'obs' holds numbers with commas (1,5): write them with a point",
    ),
    "ids that floats cannot tell apart": (
        text(f"{2**64} 1.5 0 1", f"{2**64 + 1} 1.5 0 1", head="episode obs action reward"),
        "line 2: episode column 'episode' holds numbers beyond 2^53, which cannot be told apart",
    ),
    "a reward beyond float32": (
        changed(2, "reward_b", "1e300"),
        "line 4 (episode 'b', step 0): reward 'b' is 1e+300, more than 3.4e+38",
    ),
    "a missing last observation": (
        text("123456789 1.5 0 1 2.5", "8 1 0 1 .", "9 1 0 1 2", head="episode obs action reward next_obs"),
        "line 3 (episode 8, step 1): observation 'obs' is missing",
    ),
    "a long number in a message": (
        text("123456789 . 0 1", head="episode obs action reward"),
        "line 2 (episode 123456789, step 0): observation 'obs' is missing",
    ),
    "next observations that do not follow": (
        text("a 0 1 1 1 5", "a 1 2 1 1 3", head="episode step obs action reward next_obs"),
        "line 2: 'next_obs' is 5, but the next row's 'obs' is 2",
    ),
    "too few next observations": (
        text("a 0 1 1 1 1 5", head="episode step obs_x obs_y action reward next_obs_x"),
        "there are 2 observations but 1 next observations (next_obs_x)",
    ),
    "last rows and next observations": (
        text("a 0 1 1 1 2", "a 1 2 . . 3", head="episode step obs action reward next_obs"),
        "last rows without an action and next observations are one too many",
    ),
}


@pytest.mark.parametrize("name", CSV)
def test_csv_is_refused(name, tmp_path, capsys):
    content, message = CSV[name]
    path = tmp_path / "log.csv"
    path.write_text(content)
    said = complaint(capsys, "convert", str(path), str(tmp_path / "out.npz"))
    assert message in said
    assert str(path) in said
    assert os.listdir(tmp_path) == ["log.csv"]


def test_the_file_that_these_are_made_from_is_fine(tmp_path):
    from aetdice import load_dataset

    (tmp_path / "log.csv").write_text(text(*GOOD))
    assert load_dataset(tmp_path / "log.csv").lengths.tolist() == [2, 2, 1]


OPTIONS = {
    "an unknown role": ("reward=reward_a", "columns have no role 'reward'; roles: episode, step"),
    "an unknown column": ("rewards=profit", "there is no column 'profit' (rewards); the columns are episode"),
    "no role at all": ("reward_a episode=a", "columns are role=name,name or one TOML file; not 'reward_a'"),
    "a column of two roles": ("rewards=reward_a observations=reward_a", "'reward_a' is given as "),
    "two episode columns": ("episode=episode,step", "columns: episode is one column, not 2"),
    "no such file": ("columns.toml", "columns.toml"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_columns_are_refused(name, tmp_path, capsys, monkeypatch):
    words, message = OPTIONS[name]
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text(text(*GOOD))
    assert message in complaint(capsys, "convert", "log.csv", "out.npz", "--columns", *words.split())
    assert os.listdir() == ["log.csv"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("rewards = [1, 2]", "columns: rewards is a name or a list of names, not [1, 2]"),
        ("rewards = ", "columns.toml: Invalid value"),
        ("gain = 'x'", "columns have no role 'gain'"),
    ],
)
def test_column_file_is_refused(content, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text(text(*GOOD))
    Path("columns.toml").write_text(content)
    assert message in complaint(capsys, "convert", "log.csv", "out.npz", "--columns", "columns.toml")


def archive(**changes):
    rng = np.random.default_rng(0)
    arrays = {
        "observations": rng.random((5, 2)),
        "actions": np.array([0, 1, 1]),
        "rewards": rng.random((3, 2)),
        "lengths": np.array([2, 1]),
        "terminated": np.array([True, False]),
        "truncated": np.array([False, True]),
    }
    return {name: array for name, array in {**arrays, **changes}.items() if array is not None}


FLAT = {"lengths": None, "observations": np.ones((3, 2)) / 3, "terminated": None, "truncated": None}
CODED = {
    "ends": "shift",
    "coding": {"observations": [], "indicators": False, "action_names": [], "actions": None},
}
NPZ = {
    "objects": ({"observations": np.array([{}, [], 1, 2, 3], dtype=object)}, "is not a whole NPZ file"),
    "no actions": ({"actions": None}, "has no array 'actions'"),
    "too few observations": (
        {"observations": np.ones((4, 2))},
        "observations has 4 entries, but the episodes need 5",
    ),
    "lengths that do not add up": (
        {"lengths": np.array([2, 2])},
        "rewards has 3 entries, but the episodes need 4",
    ),
    "a NaN": (
        {"observations": np.array([[1.0, np.nan]] * 5)},
        "observations must be finite, but episode 0, step 0, column 1 is nan",
    ),
    "images": (
        {"observations": np.zeros((5, 4, 4))},
        "images are not learned from: give a vector of features",
    ),
    "flat images": ({**FLAT, "observations": np.zeros((3, 4, 4))}, "images are not learned from"),
    "flat arrays of different lengths": (
        {**FLAT, "actions": np.zeros(2)},
        "'actions' has 2 rows, but the arrays",
    ),
    "negative lengths": ({"lengths": np.array([4, -1])}, "every episode at least one step"),
    "words for rewards": ({"rewards": np.array([["a", "b"]] * 3)}, "could not convert string to float"),
    "fractions for lengths": (
        {"lengths": np.array([1.5, 1.5])},
        "lengths has entries that are not whole",
    ),
    "lengths in a column": (
        {"lengths": np.array([[2], [1]])},
        "lengths has one number per episode, not shape (2, 1)",
    ),
    "words for flags": ({"terminated": np.array(["yes", "no"])}, "terminated has one number per episode"),
    "a flag of two": ({"terminated": np.array([2, 0])}, "terminated has entries that are not 0 or 1"),
    "dates": (
        {"observations": np.array(["2026-01-01"] * 5, "M8[D]")},
        "column 'obs_0' is of type datetime64[D]: turn it into numbers",
    ),
    "complex numbers": ({"observations": np.ones((5, 2)) * 1j}, "column 'obs_0' is of type complex128"),
    "flat dates": ({**FLAT, "observations": np.array(["2026-01-01"] * 3, "M8[D]")}, "of type datetime64[D]"),
    "bytes": ({**FLAT, "actions": np.array([b"a", b"\xff", b"a"])}, "holds bytes that are not ASCII"),
    "a coding of other columns": (
        {"facts": np.frombuffer(json.dumps(CODED).encode(), np.uint8)},
        "what it keeps about its columns does not fit its arrays",
    ),
    "no number for a length": ({"lengths": np.array([np.nan, 1])}, "lengths has entries that are not whole"),
    "no columns": ({"actions": np.zeros((3, 0))}, "actions have no columns"),
    "no rows": ({"observations": np.zeros((0, 2))}, "observations have no rows"),
    "a single number": ({"observations": np.array(3.0)}, "observations have no rows"),
    "tables of rewards": (
        {"rewards": np.zeros((3, 2, 2))},
        "rewards must have shape (steps, objectives), not (3, 2, 2)",
    ),
    "no end": ({"truncated": np.array([False, False])}, "episode 1 ends neither terminated nor truncated"),
}


@pytest.mark.parametrize("name", NPZ)
def test_archive_is_refused(name, tmp_path, capsys, without_type_checks):
    changes, message = NPZ[name]
    np.savez(tmp_path / "log.npz", **archive(**changes))
    said = complaint(capsys, "convert", str(tmp_path / "log.npz"), str(tmp_path / "out"))
    assert message in said
    assert "log.npz" in said
    assert os.listdir(tmp_path) == ["log.npz"]


class Evil:
    def __reduce__(self):
        return os.system, ("touch hurt",)


BYTES = {
    "log.csv": (b"episode,obs_\xff,action,reward\n0,1,0,1\n", "the names of its columns are not UTF-8"),
    "log.tsv": (
        b"episode\tobs\taction\treward\n0\t1\t\xe9\t1\n",
        "leave the column out (--columns ignored=action), or save text as UTF-8",
    ),
    "log.parquet": (b"PAR1 nonsense", "is not a Parquet file"),
    "log.npz": (b"PK nonsense", "is not a whole NPZ file"),
    "log.pkl": (pickle.dumps([Evil()]), "log.pkl"),
    "log.pickle": (pickle.dumps({"not": "a list"}), "log.pickle"),
    "compressed.csv": (gzip.compress(text(*GOOD).encode()), "is compressed; unpack it first"),
    "log.csv.gz": (gzip.compress(text(*GOOD).encode()), "is compressed; unpack it first"),
    "wide.csv": (text(*GOOD).encode("utf-16"), "is in UTF-16; save it as UTF-8"),
    "log.xlsx": (b"PK", "is of no known format (csv: comma-separated values"),
}


@pytest.mark.parametrize("name", BYTES)
def test_bytes_are_refused(name, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content, message = BYTES[name]
    Path(name).write_bytes(content)
    assert message in complaint(capsys, "convert", name, "out.csv")
    assert os.listdir() == [name]


TABLES = {
    "lists": ({"obs": [[1, 2], [3, 4]]}, "column 'obs' holds lists (an image, perhaps)"),
    "bytes": ({"obs": [b"a", b"b"]}, "column 'obs' holds bytes (an image, perhaps)"),
    "structs": ({"obs": [{"x": 1}, {"x": 2}]}, "column 'obs' holds lists (an image, perhaps)"),
    "nothing but gaps": ({"obs": [None, None]}, "observation 'obs' is missing"),
}


@pytest.mark.parametrize("name", TABLES)
def test_parquet_is_refused(name, tmp_path, capsys):
    change, message = TABLES[name]
    good = {"episode": [0, 0], "obs": [0.5, 1.5], "action": [0, 1], "reward": [1.0, 2.0]}
    parquet.write_table(pa.table({**good, **change}), tmp_path / "log.parquet")
    assert message in complaint(capsys, "convert", str(tmp_path / "log.parquet"), str(tmp_path / "out.csv"))
    assert os.listdir(tmp_path) == ["log.parquet"]


def test_store_is_refused(tmp_path, capsys):
    episode = Episode(np.zeros((3, 2)), np.array([0, 1]), np.ones((2, 1)), True, False)
    save_episodes(tmp_path / "store", Episodes.from_list([episode]))
    manifest = json.loads((tmp_path / "store" / "manifest.json").read_text())
    manifest["objectives"] = ["profit"]
    (tmp_path / "store" / "manifest.json").write_text(json.dumps(manifest))
    assert "is damaged: its SHA-256" in complaint(
        capsys, "convert", str(tmp_path / "store"), str(tmp_path / "o.csv")
    )
    assert os.listdir(tmp_path) == ["store"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            "train missing.csv --objective esr --out run",
            "there is no file missing.csv, no environment of that name",
        ),
        ("train log.csv --env fair-taxi --objective esr --out run", "DATA is log.csv and --env fair-taxi"),
        ("train log.csv --objective esr --size 5 --out run", "a log does not read --size"),
        ("train log.csv --objective esr --dataset-seed 5 --out run", "the file log.csv takes no seed"),
        ("train log.csv --objective esr --horizon 1 --out run", "has 2 steps, more than the horizon of 1"),
        ("train fair-taxi --ends shift --objective esr --out run", "the environment fair-taxi takes no ends"),
        ("convert log.csv log.txt", "log.txt has no suffix that names a format; say --to csv"),
        ("convert log.csv out.pkl --to d4morl", "pickles are read, not written"),
        ("doctor log.npz --fix out.csv", "there is no file log.npz"),
        ("doctor missing.csv", "there is no file missing.csv"),
        ("doctor log.csv --fix log.npz", "log.npz: tables are written as .csv, .parquet, .pq"),
        ("doctor log.csv --fix out.csv --columns rewards=x", "log.csv: there is no column 'x' (rewards)"),
        ("doctor log.csv --fix log.csv", "log.csv exists; delete it or choose another name"),
    ],
)
def test_command_is_refused(arguments, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text(text(*GOOD))
    assert message in complaint(capsys, *arguments.split())
    assert os.listdir() == ["log.csv"]
