"""Jobs through an engine: done once, begun again when lost, and one table whatever happened."""

import json
import os
import signal
import threading
import time
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv
from support.logs import COLUMNS, log_columns
from support.refusals import complaint
from support.sweeps import CLONING, LosingEngine, lasting, planned, run_inline

from aetdice import InputError, load_run
from aetdice.cli import main
from aetdice.engines.base import Outcome
from aetdice.engines.local import LocalEngine
from aetdice.engines.process import Worker
from aetdice.engines.running import share_done
from aetdice.engines.task import ATTEMPTS, Ended, perform
from aetdice.learning.table import PASSING, SCHEMA, arrow_table
from aetdice.progress import listening
from aetdice.report.sweeps import sweep_table
from aetdice.report.terminal import console
from aetdice.sweeps import read_table, sweep
from aetdice.sweeps.job import finished_jobs
from aetdice.sweeps.jobs import ROWS
from aetdice.sweeps.plan import begin
from aetdice.sweeps.sweeping import Swept, check, run_on
from aetdice.sweeps.table import rows_of

pytestmark = pytest.mark.trains
SEEDS = {"seeds": [0, 1], "packing": {"members": 1}}


@pytest.fixture(scope="module")
def plan():
    return planned(**SEEDS)


@pytest.fixture(scope="module")
def folder(plan, tmp_path_factory):
    """A sweep that is done."""
    folder = tmp_path_factory.mktemp("sweep")
    run_inline(plan, folder)
    return folder


def test_what_is_done_is_not_done_again(plan, folder):
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.json")}
    engine = LosingEngine(folder)
    run_on(engine, plan, folder)
    assert engine.submitted == []
    for job in plan.jobs:
        perform(job.task(), folder, "elsewhere")
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.json")} == before


def test_rows_have_every_column_and_say_what_the_run_says(plan, folder):
    table = read_table(folder)
    assert table.schema.names == list(SCHEMA)
    assert [str(kind) for kind in table.schema.types] == [
        {"float64": "double"}.get(kind, kind) for kind in SCHEMA.values()
    ]
    first, second = table.to_pylist()
    assert [first["seed"], second["seed"]] == [0, 1]
    assert first["selected"]
    assert first["attempts"] == 1
    assert first["estimate"] is None
    assert first["score_low"] <= first["score"] <= first["score_high"]
    run = load_run(folder / "jobs" / first["job"])
    assert run.member(first["member"]).verdict.words == first["verdict"]
    assert json.loads(first["versions"]) == run.versions
    kept = json.loads((folder / "jobs" / first["job"] / "result.json").read_text())
    assert kept["score"] == first["score"]


def test_lost_jobs_are_begun_again_and_the_table_is_the_same(plan, folder, tmp_path):
    again = run_inline(plan, tmp_path, losing={0: 2, 1: 1})
    assert again.failed == {}
    assert lasting(again.rows) == lasting(run_inline(plan, folder).rows)


def test_a_job_that_is_always_lost_fails_and_the_others_are_done(plan, tmp_path):
    swept = run_inline(plan, tmp_path, losing={0: 3})
    assert swept.failed == {plan.jobs[0].id: "its worker ended with signal 9 (3 times)"}
    assert [row["job"] for row in swept.rows] == [plan.jobs[1].id]
    assert read_table(tmp_path).num_rows == 1


def test_packing_changes_neither_members_nor_their_order(folder):
    other = planned(seeds=[0, 1])
    (job,) = other.jobs
    found = {job.id: {"rows": [], "seconds": 1.0, "host": "here", "attempts": 1}}
    for single in planned(**SEEDS).jobs:
        rows = json.loads((folder / "jobs" / single.id / ROWS).read_text())["rows"]
        found[job.id]["rows"] += rows
    assert [row["seed"] for row in rows_of(found, other.jobs)] == [0, 1]


def test_data_that_has_changed_are_refused(plan, tmp_path):
    begin(plan, tmp_path)
    with pytest.raises(InputError, match="the data of taxi is not what the sweep was planned with"):
        perform(replace(plan.jobs[0], sha256="0" * 64).task(), tmp_path, "here")
    assert not (tmp_path / "jobs" / plan.jobs[0].id / ROWS).exists()


def test_a_machine_that_does_not_see_the_folder_says_so(plan, tmp_path):
    with pytest.raises(InputError, match="over there does not see"):
        perform(plan.jobs[0].task(), tmp_path / "elsewhere", "over there")


def test_progress_goes_up_to_all_members(plan, tmp_path):
    heard = []
    with listening(lambda stage, step, total, metrics: heard.append((stage, step, total))):
        run_inline(plan, tmp_path)
    members = [(step, total) for stage, step, total in heard if stage == "members"]
    assert members == [(0, 2), (1, 2), (2, 2)]
    assert heard[-2:] == [("% of all work", 100, 100), ("members", 2, 2)]


def test_how_far_a_job_is_can_be_told_of_damaged_files(folder, plan, tmp_path):
    done = folder / "jobs" / plan.jobs[0].id
    assert share_done(done) == pytest.approx(0.9)
    assert share_done(tmp_path) == 0
    (tmp_path / "config.json").write_text((done / "config.json").read_text())
    (tmp_path / "metrics.jsonl").write_text('{"stage": "clo\n')
    assert share_done(tmp_path) == 0


def test_a_killed_worker_loses_nothing(tmp_path):
    """Killed by SIGKILL after a checkpoint; another one goes on from there, to the same bits."""
    longer = {**CLONING["settings"], "extraction": {"steps": 3000, "batch": 8}, "trainer": {"chunk": 20}}
    plan = planned(**SEEDS, settings=longer)
    whole = run_inline(plan, tmp_path / "whole")
    begin(plan, tmp_path / "cut")
    first = tmp_path / "cut" / "jobs" / plan.jobs[0].id

    def kill():
        while not (first / "checkpoint.npz").exists():
            time.sleep(0.005)
        os.kill(json.loads((first / ATTEMPTS).read_text())["pid"], signal.SIGKILL)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    engine = LocalEngine(tmp_path / "cut", workers=1, threads=1)
    try:
        swept = run_on(engine, plan, tmp_path / "cut")
    finally:
        engine.cancel()
    killer.join(10)
    assert swept.failed == {}
    assert sorted(row["attempts"] for row in swept.rows) == [1, 2]
    assert lasting(swept.rows) == lasting(whole.rows)
    for one, other in zip(finished_jobs(tmp_path / "cut"), finished_jobs(tmp_path / "whole"), strict=True):
        arrays = [np.load(job / "policy-0.npz") for job in (one, other)]
        assert all(np.array_equal(arrays[0][name], arrays[1][name]) for name in arrays[0].files)


def test_a_worker_that_dies_before_it_is_given_a_job_loses_nothing(plan, tmp_path, monkeypatch):
    """One is killed while it starts, the next while it waits for work."""
    begin(plan, tmp_path)
    engine = LocalEngine(tmp_path, workers=1, threads=1)
    killed = []

    def kill(worker):
        os.kill(worker.process.pid, signal.SIGKILL)
        worker.process.wait()
        killed.append(worker)

    send = Worker.send
    monkeypatch.setattr(Worker, "send", lambda worker, *given: (kill(worker), send(worker, *given)))
    try:
        engine.submit(plan.jobs[0].task())
        assert engine.completed(0.0) == []
        kill(next(iter(engine.working)))
        ended = []
        while not ended:
            ended = engine.completed(1.0)
    finally:
        engine.cancel()
    assert ended == [Outcome(plan.jobs[0].task(), Ended("lost", "its worker ended with signal 9"))]
    assert len(killed) == 2


def test_workers_that_cannot_be_started_end_the_sweep(plan, tmp_path, monkeypatch):
    begin(plan, tmp_path)
    monkeypatch.setattr("sys.executable", "false")
    engine = LocalEngine(tmp_path, workers=1, threads=1)
    with pytest.raises(
        InputError, match=r"no worker can be started: its worker ended with code 1; see .*log"
    ):
        run_on(engine, plan, tmp_path)
    engine.cancel()


def test_a_job_is_done_once_its_rows_are_seen(plan, tmp_path, monkeypatch):
    """A network file system may show them late; what it never shows is not done."""
    monkeypatch.setattr("aetdice.engines.running.LOOK", 0.01)
    monkeypatch.setattr("aetdice.engines.running.SEEN", 0.05)
    monkeypatch.setattr("aetdice.sweeps.job.do_job", lambda record, own: None)
    swept = run_inline(plan, tmp_path)
    assert set(swept.failed) == {job.id for job in plan.jobs}
    assert all(words.endswith("is not seen here") for words in swept.failed.values())


def test_estimates_stand_beside_every_member_of_a_log(tmp_path):
    kept = {**CLONING["settings"], "trainer": {"chunk": 20, "report": 0.3}}
    swept = run_inline(planned(**SEEDS, settings=kept), tmp_path)
    for row in swept.rows:
        assert row["estimate_low"] <= row["estimate"] <= row["estimate_high"]
        assert row["support"] in ("supported", "weak", "do not trust")


def test_the_best_setting_is_selected_across_jobs(folder):
    """Two β in two jobs: the rule sees both."""
    base = json.loads((finished_jobs(folder)[0] / ROWS).read_text())["rows"][0]
    sound = {"mass_violation": 0.0, "flow_violation": 0.1, "effective_sample_size": 0.5}
    rows = [
        {**base, "beta": beta, "diagnostics": {**sound, "held_out_claimed_value": value}}
        for beta, value in ((0.1, 1.0), (0.01, 2.0))
    ]
    jobs = planned(**SEEDS).jobs
    about = {"seconds": 1.0, "host": "here", "attempts": 1}
    found = {job.id: {"rows": [row], **about} for job, row in zip(jobs, rows, strict=True)}
    assert [row["selected"] for row in rows_of(found, jobs)] == [False, True]
    assert arrow_table(rows_of(found, jobs))["beta"].to_pylist() == [0.1, 0.01]
    assert set(PASSING) < set(SCHEMA)


def test_in_python_what_is_left_out_is_told(folder):
    heard = []
    sweep({**CLONING, **SEEDS}, folder, progress=lambda stage, *_: heard.append(stage))
    assert not any(stage.startswith("left out") for stage in heard)
    both = {**CLONING, **SEEDS, "algorithms": ["bc", "fairdice"], "settings": {}}
    with pytest.raises(InputError, match="holds another sweep"):
        sweep(both, folder, progress=lambda stage, *_: heard.append(stage))
    assert any(stage.startswith("left out on taxi: fairdice optimises") for stage in heard)


def test_scores_stand_beside_estimates(folder):
    """Of datasets with an environment, and of logs, each in its own column."""
    scored = read_table(folder).to_pylist()[0] | {"settings": {}}
    estimated = {**scored, "dataset": "log", "score": None, "twin_score": None, "estimate": -1.25}
    console(printed := StringIO()).print(sweep_table([scored, estimated], "results.parquet"))
    lines = printed.getvalue().splitlines()
    heading = next(line for line in lines if "dataset" in line)
    assert all(word in heading for word in ("score", "twin", "estimate"))
    assert any("taxi" in line and f"{scored['score']:.4f}" in line for line in lines)
    assert any("log" in line and "-1.2500" in line for line in lines)


def toml(value):
    """A value as TOML writes it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{name}" = {toml(entry)}' for name, entry in value.items()) + "}"
    return "[" + ", ".join(map(toml, value)) + "]" if isinstance(value, list) else json.dumps(value)


@pytest.fixture
def file(tmp_path, monkeypatch):
    """The sweep of these tests as a file."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "sweep.toml"
    path.write_text("\n".join(f"{name} = {toml(value)}" for name, value in {**CLONING, **SEEDS}.items()))
    return str(path)


def test_command_shows_what_was_selected(file, folder, capsys):
    main(["sweep", file, "--out", str(folder), "--quiet"])
    shown = capsys.readouterr().out
    assert "selected, offline" in shown
    assert all(word in shown for word in ("taxi", "ESR", "bc", str(folder / "results.parquet")))
    main(["sweep", file, "--out", str(folder), "--quiet", "--json"])
    record = json.loads(capsys.readouterr().out)
    assert record["rows"] == len(record["selected"]) == 2
    assert record["failed"] == {}


def test_command_lists_jobs_and_begins_none(file, capsys, plan, tmp_path):
    main(["sweep", file, "--list", "--json", "--quiet"])
    assert [job["id"] for job in json.loads(capsys.readouterr().out)["jobs"]] == [job.id for job in plan.jobs]
    main(["sweep", file, "--list", "--quiet"])
    assert all(job.id in capsys.readouterr().out for job in plan.jobs[:1])
    assert not (tmp_path / "sweep").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--workers 0", "at least one worker is needed, not 0"),
        ("--address auto", "an address is of a Ray cluster: say --engine ray"),
        ("--engine ray --workers 2", "a Ray cluster has its own number of workers: leave --workers out"),
    ],
)
def test_command_refuses(file, capsys, options, message):
    assert complaint(capsys, "sweep", file, "--quiet", *options.split()) == message
    assert not Path(file).with_suffix("").exists()


def test_a_job_that_came_to_nothing_is_one_sentence(tmp_path):
    with pytest.raises(
        InputError, match=r"1 job\(s\) came to nothing, the first in .*000-abc: the disk is full"
    ):
        check(Swept([], {"000-abc": "the disk is full"}), tmp_path)


def test_a_report_of_a_sweep_shows_all_its_jobs(folder, plan, tmp_path, capsys):
    page = tmp_path / "report.html"
    main(["report", str(folder), "--out", str(page), "--episodes", "5", "--quiet"])
    assert all(job.id in page.read_text() for job in plan.jobs)


def test_a_report_of_a_sweep_that_has_only_begun_says_so(plan, tmp_path, capsys):
    begin(plan, tmp_path)
    assert complaint(capsys, "report", str(tmp_path)) == f"no job of the sweep in {tmp_path} is done yet"


def test_a_machine_fetches_the_data_of_its_own_jobs(tmp_path, monkeypatch):
    memory = pytest.importorskip("fsspec").filesystem("memory")
    for seed in (0, 1):
        csv.write_csv(pa.table(log_columns(seed=seed)), tmp_path / "log.csv")
        memory.pipe(f"/sweep/{seed}.csv", (tmp_path / "log.csv").read_bytes())
    monkeypatch.setenv("AETDICE_CACHE", str(tmp_path / "planner"))
    datasets = [
        {"data": f"memory://sweep/{seed}.csv", "columns": COLUMNS, "name": str(seed)} for seed in (0, 1)
    ]
    plan = planned(datasets=datasets)
    begin(plan, tmp_path / "sweep")
    assert {job.origin["file"] for job in plan.jobs} == {f"memory://sweep/{seed}.csv" for seed in (0, 1)}
    for job in plan.jobs:
        monkeypatch.setenv("AETDICE_CACHE", str(tmp_path / job.dataset))
        perform(job.task(), tmp_path / "sweep", job.dataset)
        assert len(list((tmp_path / job.dataset).rglob("*.csv"))) == 1
    memory.pipe("/sweep/1.csv", memory.cat("/sweep/0.csv"))
    job = replace(plan.jobs[-1], id="again", origin={**plan.jobs[-1].origin, "ends": "shift"})
    with pytest.raises(InputError, match="is not what the sweep was planned with"):
        perform(job.task(), tmp_path / "sweep", "later")
