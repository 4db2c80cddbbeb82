"""Tables become stores block by block: the same, bit for bit, as they are in memory, whatever the blocks."""

import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv, ipc, parquet
from support.logs import COLUMNS, log_columns, log_episodes
from support.refusals import complaint

from aetdice import InputError, load_dataset
from aetdice.cli import main
from aetdice.data import Columns, load_episodes, load_facts, loading
from aetdice.data.conversion import bytes_of_table, plan_of, write_store
from aetdice.data.readers import columnar, locate, read_file, spool
from aetdice.datasets import dataset_of

PARTS = ("observations", "actions", "rewards", "lengths", "terminated", "truncated")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AETDICE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def in_blocks(path: Any, columns: Any = None, **how: Any) -> Any:
    """Episodes, coding and notes through a store."""
    store = path.parent / f"{path.name}.store"
    place = locate(path)
    plan = plan_of(place.stack(), columns or Columns(), **how)
    write_store(store, plan)
    return load_episodes(store), load_facts(store), plan


def outcome(read: Any) -> Any:
    try:
        return read()
    except InputError as error:
        return error


EVERY = ["floats", "small", "floats that are whole", "large", "flags", "words", "numbers as words"]
ACTIONS = [
    ["floats", "floats"], ["words"], ["small"], ["small", "words"], ["flags", "flags"], ["large"],
    ["mostly whole"], ["floats that are whole", "small"], ["words", "floats"], ["coded words", "small"],
]  # fmt: skip
LOGS = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "lengths": st.lists(st.integers(1, 7), min_size=1, max_size=12),
        "last": st.sampled_from(["none", "all", "some", "next"]),
        "ids": st.sampled_from(["numbers", "words", "numbers as words", "dates", "none"]),
        "steps": st.booleans(),
        "observations": st.lists(st.sampled_from([*EVERY, "coded words"]), min_size=1, max_size=3),
        "actions": st.sampled_from(ACTIONS),
        "rewards": st.integers(1, 2),
        "flagged": st.booleans(),
        "over": st.sampled_from([0.0, 0.5, 0.95]),
        "said": st.sampled_from([{}, {}, {}, {"numbers": ("action_0",)}, {"categories": ("obs_0",)}]),
    }
)
"""Ragged episodes with columns of many kinds, and what is said about them."""


def values_of(kind: str, total: int, rng: np.random.Generator, mask: Any) -> Any:
    """A column."""
    found = {
        "floats": lambda: rng.normal(size=total),
        "small": lambda: rng.integers(0, 4, total),
        "floats that are whole": lambda: rng.integers(-2, 3, total).astype(float),
        "large": lambda: rng.integers(-(2**60), 2**60, total),
        "flags": lambda: rng.random(total) < 0.5,
        "words": lambda: rng.choice(["b", "a", "ö", "7"], total),
        "coded words": lambda: rng.choice(["b", "a", "ö", "7"], total),
        "numbers as words": lambda: rng.choice(["1", "2.5", "-3"], total),
        "mostly whole": lambda: np.where(rng.random(total) < 0.05, 0.5, rng.integers(0, 3, total)),
    }[kind]()
    array = pa.array(found, mask=mask)
    return array.dictionary_encode() if kind == "coded words" else array


def make_log(spec: dict[str, Any]) -> pa.Table:
    """The table of a log."""
    rng, lengths = np.random.default_rng(spec["seed"]), np.array(spec["lengths"])
    closed = {"all": np.ones(len(lengths), bool), "some": rng.random(len(lengths)) < 0.5}.get(
        spec["last"], np.zeros(len(lengths), bool)
    )
    rows = lengths + closed
    total, lasts = int(rows.sum()), np.cumsum(rows) - 1
    closing = np.zeros(total, bool)
    closing[lasts[closed]] = True
    number = np.repeat(np.arange(len(lengths)), rows)
    columns: dict[str, Any] = {}
    if spec["ids"] == "dates":
        columns["episode"] = pa.array(number.astype("M8[D]"))
    elif spec["ids"] != "none":
        form = {"numbers": int, "words": "d{}".format, "numbers as words": "{}.0".format}[spec["ids"]]
        columns["episode"] = pa.array([form(each) for each in number.tolist()])
    if spec["steps"]:
        columns["step"] = pa.array(np.arange(total) - np.repeat(np.cumsum(rows) - rows, rows) + 3)
    for index, kind in enumerate(spec["observations"]):
        column = values_of(kind, total, rng, None)
        columns[f"obs_{index}"] = column
        if spec["last"] == "next":
            columns[f"next_obs_{index}"] = pa.array([*column.to_pylist()[1:], column[0].as_py()])
    for index, kind in enumerate(spec["actions"]):
        columns[f"action_{index}"] = values_of(kind, total, rng, closing)
    for index in range(spec["rewards"]):
        columns[f"reward_{index}"] = pa.array(rng.normal(size=total), mask=closing)
    if spec["flagged"] or spec["ids"] == "none":
        over = rng.random(len(lengths)) < spec["over"]
        for name, flags in (("terminated", over), ("truncated", ~over)):
            column = np.zeros(total, bool)
            column[lasts - closed] = flags
            columns[name] = pa.array(column, mask=closing)
    return pa.table(columns)


@given(
    LOGS,
    st.sampled_from(["parquet", "arrow", "stream.arrow", "csv"]),
    st.integers(1, 9),
    st.integers(1, 20),
    st.sampled_from([None, "shift", "recording"]),
    st.sampled_from([None, 7, 9]),
)
def test_blocks_do_not_matter(tmp_path_factory, spec, kind, size, group, ends, horizon):
    table, columns = make_log(spec), Columns.from_record(spec["said"])
    path = tmp_path_factory.mktemp("log") / f"log.{kind}"
    if kind == "parquet":
        parquet.write_table(table, path, row_group_size=group)
    elif kind == "csv":
        csv.write_csv(
            pa.table([_decoded(column) for column in table.columns], names=table.column_names), path
        )
    else:
        new = ipc.new_stream if kind == "stream.arrow" else ipc.new_file
        with new(path, table.schema) as file:
            file.write_table(table.unify_dictionaries(), max_chunksize=group)
    how = {"ends": ends, "horizon": horizon}
    wanted = outcome(lambda: read_file(path, columns, **how))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columnar, "BLOCK_ROWS", size)
        patch.setattr(spool, "BLOCK_BYTES", 300 + 40 * size)  # a header must fit
        found = outcome(lambda: in_blocks(path, columns, **how))
    if isinstance(wanted, InputError):
        assert str(found) == str(wanted)
        return
    episodes, facts, plan = found
    for part in PARTS:
        np.testing.assert_array_equal(getattr(episodes, part), getattr(wanted, part))
        assert getattr(episodes, part).dtype == getattr(wanted, part).dtype
    assert episodes.sha256 == wanted.sha256
    assert (episodes.objectives, plan.coding) == (wanted.objectives, wanted.coding)
    assert (facts["ends"], facts["horizon"], plan.columns) == (wanted.ends, horizon, wanted.origin["columns"])
    assert plan.notes == wanted.notes
    assert plan.size == (len(wanted), wanted.steps)


def _decoded(column: Any) -> Any:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


ROWS = "episode,step,obs,action,reward\n"
WRONG = {
    "an episode goes on": "0,0,.5,a,1\n0,1,.5,b,1\n1,0,.5,a,1\n1,1,.5,a,1\n0,0,.5,b,1\n",
    "an episode goes on much later": "".join(f"{i},0,.5,a,1\n" for i in [*range(9), 3]),
    "a word goes on much later": "".join(f"{i},0,.5,a,1\n" for i in "abcdefghib"),
    "another first step": "0,0,.5,a,1\n0,1,.5,b,1\n1,0,.5,a,1\n1,1,.5,a,1\n2,1,.5,b,1\n",
    "a step is missing": "0,0,.5,a,1\n0,1,.5,b,1\n0,2,.5,a,1\n0,4,.5,a,1\n",
    "a word among rewards": "0,0,.5,a,1\n0,1,.5,b,1\n0,2,.5,a,1\n0,3,.5,a,much\n",
    "a word among steps": "0,0,.5,a,1\n0,1,.5,b,1\n0,2,.5,a,1\n0,x,.5,a,1\n",
    "a reward is missing": "0,0,.5,a,1\n0,1,.5,b,1\n0,2,.5,a,1\n0,3,.5,a,\n1,0,.5,a,1\n",
    "an infinite reward": "0,0,.5,a,1\n0,1,.5,b,1\n0,2,.5,a,1\n0,3,.5,a,inf\n1,0,.5,a,1\n",
    "an observation is missing": "0,0,.5,a,1\n0,1,.5,b,1\n0,2,.5,a,1\n1,0,,a,1\n",
    "numbers with a slip": "0,0,1,a,1\n0,1,2,b,1\n0,2,3,a,1\n1,0,4l,a,1\n",
    "numbers with commas": '0,0,"1,5",a,1\n0,1,"2,5",b,1\n0,2,"3,5",a,1\n',
    "classes and numbers": "0,0,.5,a,1\n",
    "nothing": "",
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_refused_in_blocks_as_at_once(name, tmp_path, monkeypatch):
    (tmp_path / "log.csv").write_text(ROWS + WRONG[name])
    columns = Columns.from_record({"actions": ["action", "obs"]} | {"observations": "step", "step": "-"}
                                  if name == "classes and numbers" else {})  # fmt: skip
    monkeypatch.setattr(columnar, "BLOCK_ROWS", 2)
    with pytest.raises(InputError) as wanted:
        read_file(tmp_path / "log.csv", columns)
    with pytest.raises(InputError) as found:
        in_blocks(tmp_path / "log.csv", columns)
    said, expected = (re.sub(r" \(episode.*?\)", "", str(each.value)) for each in (found, wanted))
    assert said == expected
    assert not (tmp_path / "log.csv.store").exists()


def test_columns_whose_type_changes_late_are_what_all_of_them_are(tmp_path, monkeypatch):
    late = ["1", "true", "2026-01-01", "2026-01-01 10:00:00", "1.5", "word", ""]
    monkeypatch.setattr(spool, "BLOCK_BYTES", 64)
    for first in late[:-1]:
        for then in late:
            rows = [f"{first},1,2" for _ in range(40)] + [f"{then},1,2"]
            (tmp_path / "log.csv").write_text("episode,obs,reward\n" + "\n".join(rows))
            place = locate(tmp_path / "log.csv")
            found, wanted = place.stack().column("episode"), spool.read_csv(tmp_path / "log.csv")["episode"]
            assert found.to_pylist() == wanted.to_pylist()
            assert str(found.type).split("[")[0] == str(wanted.type).split("[")[0]  # Parquet has no seconds


def test_cells_with_line_breaks_are_read_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(spool, "BLOCK_BYTES", 64)
    rows = "".join(f'{index // 4},"a\nb{index % 3}",{index % 2},1\n' for index in range(40))
    (tmp_path / "log.csv").write_text("episode,obs,action,reward\n" + rows)
    episodes, _, _ = in_blocks(tmp_path / "log.csv")
    assert episodes.sha256 == load_dataset(tmp_path / "log.csv").sha256


@given(st.lists(st.integers(1, 60), max_size=5), st.sampled_from(["parquet", "csv"]), st.integers(1, 50))
def test_parts_that_cut_episodes_are_one_table_in_blocks_too(tmp_path_factory, sizes, kind, size):
    folder, rest = tmp_path_factory.mktemp("log"), pa.table(log_columns())
    for number, count in enumerate([*sizes, rest.num_rows]):
        part, rest = rest.slice(0, count), rest.slice(min(count, rest.num_rows))
        path = folder / f"part-{number}.{kind}"
        csv.write_csv(part, path) if kind == "csv" else parquet.write_table(part, path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columnar, "BLOCK_ROWS", size)
        episodes, _, _ = in_blocks(folder, Columns.from_record(COLUMNS))
    assert episodes.sha256 == log_episodes().sha256


def load_there(folder: str, cache: str) -> str:
    os.environ["AETDICE_CACHE"] = cache
    loading.STREAMED_BYTES, columnar.BLOCK_ROWS = 1000, 16
    return load_dataset(f"{folder}/log.parquet", columns=COLUMNS).sha256


def test_processes_that_load_at_once_make_one_store(tmp_path, cache):
    parquet.write_table(pa.table(log_columns()), tmp_path / "log.parquet")
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        found = pool.starmap(load_there, [(str(tmp_path), str(cache))] * 2)
    assert found == [log_episodes().sha256] * 2
    assert len(list((cache / "data" / "stores").glob("*/store"))) == 1


def test_an_episode_longer_than_many_blocks_is_one(tmp_path, monkeypatch):
    monkeypatch.setattr(columnar, "BLOCK_ROWS", 3)
    rng = np.random.default_rng(0)
    table = pa.table({"obs": rng.random(500), "action": rng.integers(0, 3, 500), "reward": rng.random(500)})
    parquet.write_table(table, tmp_path / "log.parquet")
    columns = Columns(episode="-")
    episodes, _, _ = in_blocks(tmp_path / "log.parquet", columns)
    assert episodes.sha256 == load_dataset(tmp_path / "log.parquet", columns=columns).sha256
    assert episodes.lengths.tolist() == [500]


# On the command line.


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_converting_and_appending_in_blocks_is_that_in_memory(kind, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(columnar, "BLOCK_ROWS", 7)
    for index in range(2):
        table, path = pa.table(log_columns(seed=index)), tmp_path / f"{index}.{kind}"
        csv.write_csv(table, path) if kind == "csv" else parquet.write_table(table, path)
    columns = ["--columns", "actions=send", "rewards=served,waited"]
    main(["convert", str(tmp_path / f"0.{kind}"), str(tmp_path / "log"), *columns, "--json"])
    said = json.loads(capsys.readouterr().out)
    wanted = log_episodes()
    assert (said["episodes"], said["steps"], said["notes"]) == (len(wanted), wanted.steps, list(wanted.notes))
    found = load_dataset(tmp_path / "log")
    assert (found.sha256, found.coding, found.ends) == (wanted.sha256, wanted.coding, wanted.ends)
    main(["convert", str(tmp_path / f"1.{kind}"), str(tmp_path / "log"), *columns, "--append"])
    both = load_dataset(tmp_path / "log")
    np.testing.assert_array_equal(
        both.rewards, np.concatenate([wanted.rewards, log_episodes(seed=1).rewards])
    )
    assert len(both) == 80
    capsys.readouterr()
    assert "exists" in complaint(capsys, "convert", str(tmp_path / f"0.{kind}"), str(tmp_path / "log"))


def convert_slowly(source: str, target: str) -> None:
    from aetdice.data import conversion

    coded = conversion.coded_actions

    def wait(*arguments: Any) -> Any:
        (os.path.exists(f"{source}.seen") or time.sleep(0)) and None
        open(f"{source}.seen", "w").close()
        time.sleep(5)
        return coded(*arguments)

    conversion.coded_actions = wait
    main(["convert", source, target, "--columns", "actions=send", "rewards=served,waited"])


def test_a_conversion_that_is_killed_leaves_no_store(tmp_path):
    csv.write_csv(pa.table(log_columns()), tmp_path / "log.csv")
    target = tmp_path / "log"
    process = multiprocessing.get_context("spawn").Process(
        target=convert_slowly, args=(str(tmp_path / "log.csv"), str(target))
    )
    process.start()
    while not (tmp_path / "log.csv.seen").exists():
        assert process.is_alive()
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert not target.exists()
    main(
        [
            "convert",
            str(tmp_path / "log.csv"),
            str(target),
            "--columns",
            "actions=send",
            "rewards=served,waited",
        ]
    )
    assert load_dataset(target).sha256 == log_episodes().sha256


# Tables that are too large for memory.


@pytest.fixture
def small_memory(monkeypatch):
    monkeypatch.setattr(loading, "STREAMED_BYTES", 1000)
    monkeypatch.setattr(loading, "SPOOLED_BYTES", 0)
    monkeypatch.setattr(columnar, "BLOCK_ROWS", 16)


def test_large_tables_become_stores_of_the_cache_once(tmp_path, small_memory, monkeypatch, cache):
    csv.write_csv(pa.table(log_columns()), tmp_path / "log.csv")
    wanted = log_episodes()
    found = load_dataset(tmp_path / "log.csv", columns=COLUMNS)
    assert (found.sha256, found.coding, found.ends) == (wanted.sha256, wanted.coding, wanted.ends)
    assert found.notes[:-1] == wanted.notes
    assert found.notes[-1].startswith("too large for memory: read from ")
    (store,) = (cache / "data" / "stores").glob("*/store")
    with monkeypatch.context() as without:
        without.setattr(loading, "plan_of", None)  # it is not made again
        again = load_dataset(tmp_path / "log.csv", columns=COLUMNS)
        assert (again.sha256, again.notes, again.origin) == (found.sha256, found.notes, found.origin)
    assert dataset_of(json.loads(json.dumps(found.origin))).sha256 == found.sha256
    other = load_dataset(tmp_path / "log.csv", columns=COLUMNS, ends="recording")
    assert other.ends == "recording"
    csv.write_csv(pa.table(log_columns(seed=1)), tmp_path / "log.csv")
    assert load_dataset(tmp_path / "log.csv", columns=COLUMNS).sha256 == log_episodes(seed=1).sha256
    (store / "rewards.npy").unlink()  # damaged ones are made again
    csv.write_csv(pa.table(log_columns()), tmp_path / "log.csv")
    assert load_dataset(tmp_path / "log.csv", columns=COLUMNS).sha256 == wanted.sha256


def test_a_table_that_changes_while_it_is_converted_is_refused(tmp_path, small_memory, monkeypatch, cache):
    path, plan_of = tmp_path / "log.parquet", loading.plan_of
    parquet.write_table(pa.table(log_columns()), path)

    def change(*arguments):
        plan = plan_of(*arguments)
        parquet.write_table(pa.table(log_columns(seed=1)), tmp_path / "new")
        os.replace(tmp_path / "new", path)
        return plan

    with monkeypatch.context() as busy:
        busy.setattr(loading, "plan_of", change)
        with pytest.raises(InputError, match=r"log\.parquet has changed while it was read"):
            load_dataset(path, columns=COLUMNS)
    assert not list(cache.rglob("*.npy"))
    assert load_dataset(path, columns=COLUMNS).sha256 == log_episodes(seed=1).sha256


def test_a_changed_file_of_the_same_size_and_time_is_another(tmp_path, small_memory):
    path = tmp_path / "log.csv"
    path.write_text("episode,obs,action,reward\n" + "0,0.5,1,1\n" * 100)
    before, facts = load_dataset(path), os.stat(path)
    with path.open("r+") as file:
        file.write(path.read_text().replace("0.5", "0.7"))
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert load_dataset(path).sha256 != before.sha256


def test_without_a_cache_large_tables_are_loaded_and_that_is_said(tmp_path, small_memory, monkeypatch):
    monkeypatch.setenv("AETDICE_CACHE", "off")
    csv.write_csv(pa.table(log_columns()), tmp_path / "log.csv")
    found = load_dataset(tmp_path / "log.csv", columns=COLUMNS)
    assert found.sha256 == log_episodes().sha256
    assert found.notes[-1].endswith("in memory: no cache folder to make a store in")


def test_large_tables_at_a_url_are_fetched_once(tmp_path, small_memory, monkeypatch):
    fsspec = pytest.importorskip("fsspec")
    csv.write_csv(pa.table(log_columns()), tmp_path / "log.csv")
    memory = fsspec.filesystem("memory")
    memory.pipe("/large/log.csv", (tmp_path / "log.csv").read_bytes())
    assert load_dataset("memory://large/log.csv", columns=COLUMNS).sha256 == log_episodes().sha256
    monkeypatch.setattr(type(memory), "get_file", None)
    assert load_dataset("memory://large/log.csv", columns=COLUMNS).sha256 == log_episodes().sha256
    # Made into another store, from the copy, which another process may be reading just now.
    assert load_dataset("memory://large/log.csv", columns=COLUMNS, ends="recording").ends == "recording"


def test_addresses_that_are_shown_alike_have_stores_of_their_own(tmp_path, small_memory, monkeypatch):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    monkeypatch.setattr(
        type(memory), "info", lambda self, path, **_: {"name": path, "type": "file", "size": None, "etag": 1}
    )
    for seed, name in enumerate("ab"):
        csv.write_csv(pa.table(log_columns(seed=seed)), tmp_path / "log.csv")
        memory.pipe(f"/export.csv?table={name}", (tmp_path / "log.csv").read_bytes())
    for seed, name in enumerate("ab"):
        found = load_dataset(f"memory://export.csv?table={name}", columns=COLUMNS)
        assert found.sha256 == log_episodes(seed=seed).sha256


PEAK = """
import sys
from aetdice.cli import main
def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))
before = peak()
main(["convert", sys.argv[1], sys.argv[2], "--quiet"])
print(before, peak())
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="nothing else tells a process's peak")
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_memory_does_not_grow_with_the_table(kind, tmp_path):
    rng = np.random.default_rng(0)
    peaks = []
    for steps in (400_000, 3_200_000):  # 46 and 371 MB of arrays
        columns: dict[str, Any] = {
            "episode": np.arange(steps) // 200,
            "truncated": np.arange(steps) % 200 == 199,
        }
        columns |= {f"obs_{i}": rng.random(steps, np.float32) for i in range(17)}
        columns |= {f"action_{i}": rng.random(steps, np.float32) for i in range(6)}
        columns |= {f"reward_{i}": rng.random(steps) for i in range(3)}
        path = tmp_path / f"{steps}.{kind}"
        if kind == "parquet":
            parquet.write_table(pa.table(columns), path, row_group_size=steps)  # one group: the worst case
        else:
            with ipc.new_file(path, pa.table(columns).schema) as file:
                file.write_table(pa.table(columns), max_chunksize=100_000)
        command = [sys.executable, "-c", PEAK, str(path), str(tmp_path / f"{steps}")]
        before, peak = map(
            int, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-2:]
        )
        peaks.append(peak - before)
    assert peaks[1] < peaks[0] + 120  # MB, where the arrays are 325 larger
    assert peaks[1] < 600


def test_sizes_are_counted_without_reading(tmp_path):
    parquet.write_table(pa.table(log_columns()), tmp_path / "log.parquet")
    stack = locate(tmp_path / "log.parquet").stack()
    columns = Columns.from_record(COLUMNS)
    assert bytes_of_table(stack, columns) == stack.rows * (2 * 4 + 4 + 2 * 8)
