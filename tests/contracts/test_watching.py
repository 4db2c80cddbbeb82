"""Watching a run by its folder: while it grows, when it has ended, and when it is damaged."""

import json
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from support.refusals import complaint

from aetdice.cli import main
from aetdice.learning.folder import ASKED
from aetdice.learning.watching import watch_run
from aetdice.report.watching import BLOCKS, sparkline, state_line, state_page

STAGES = {"values": 1000, "refit": 2, "cloning": 400}
ENDED = {
    "by_objective": [
        {
            "objective": "ESR: F = log",
            "score": 1.25,
            "twin_score": 0.5,
            "verdict": "All is well.",
            "trusted": True,
        }
    ],
    "members": [{}],
    "seconds": 75.0,
    "versions": {},
}


def begin(folder: Path, **changes) -> Path:
    """A run that has only just begun."""
    asked = {name: {} for name in ASKED} | {"algorithm": "aetdice", "horizon": 9}
    asked |= {"objectives": [{"name": "ESR: F = log"}], "dataset": {"origin": None}}
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**asked, "stages": STAGES, "format": 2, **changes}))
    return folder


def write(folder: Path, stage: str, step: int, seconds: float, **metrics) -> None:
    with (folder / "metrics.jsonl").open("a") as file:
        file.write(json.dumps({"stage": stage, "step": step, "seconds": seconds, **metrics}) + "\n")


def end(folder: Path, **changes) -> None:
    (folder / "result.json").write_text(json.dumps({**ENDED, **changes}))


@pytest.fixture
def folder(tmp_path) -> Path:
    """A run of two members at 300 of 1,000 updates, ten updates a second."""
    folder = begin(tmp_path / "run")
    for step in (100, 200, 300):
        write(folder, "values", step, step / 10, dual_value=[step, step + 2.0], slack=[[1, 2], [3, 4]])
    return folder


def test_stage_step_and_remaining_time(folder):
    state = watch_run(folder)
    assert (state.stage, state.step, state.ended, state.cut) == ("values", 300, False, False)
    assert state.left == pytest.approx(70)
    assert state.totals == STAGES
    assert state_line(state.record()) == f"{folder}: values 300 of 1,000, 1 min 10 s left in it"


def test_curves_are_medians_of_the_members(folder):
    [curve] = watch_run(folder).curves  # vectors are no curves
    assert (curve.name, curve.steps, curve.values) == ("dual_value", [100, 200, 300], [101, 201, 301])
    assert (curve.low, curve.high) == (300, 302)


def test_a_resumed_run_has_the_pace_of_its_second_half(folder):
    """It counts its seconds from 0 again, and repeats what was not saved."""
    write(folder, "values", 300, 1.0, dual_value=[7.0, 7.0])
    write(folder, "values", 400, 6.0, dual_value=[9.0, 9.0])
    state = watch_run(folder)
    assert state.left == pytest.approx(600 / 20)
    assert state.curves[0].steps == [100, 200, 300, 400]
    assert state.curves[0].values == [101, 201, 7, 9]


def test_a_line_that_is_being_written_waits(folder):
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"stage": "values", "st')
    assert watch_run(folder).step == 300


def test_a_run_without_totals_or_lines_is_shown_too(tmp_path):
    folder = begin(tmp_path / "run", stages={})
    assert watch_run(folder).stage is None
    write(folder, "cloning", 25, 1.0, log_likelihood=[-1.0])
    state = watch_run(folder)
    assert (state.step, state.left, state.totals) == (25, None, {})
    state_page(state.record())


def test_a_silent_run_may_have_been_cut_off(folder, capsys):
    later = watch_run(folder, now=time.time() + 3600)
    assert later.cut
    assert not watch_run(folder, now=time.time() + 30).cut


def test_once_shows_the_present_state(folder, capsys):
    main(["watch", str(folder), "--once"])
    shown = capsys.readouterr().out
    assert "300 of 1,000" in shown
    assert "1 min 10 s left" in shown
    assert "dual value" in shown
    assert any(block in shown for block in BLOCKS)
    main(["watch", str(folder), "--once", "--json"])
    record = json.loads(capsys.readouterr().out)
    assert (record["step"], record["ended"], record["result"]) == (300, False, None)


@pytest.mark.parametrize("options", [[], ["--json"], ["--quiet"]])
def test_watching_ends_with_the_run(folder, capsys, options):
    def grow() -> None:
        time.sleep(0.1)
        write(folder, "cloning", 400, 80.0, log_likelihood=[-0.5])
        time.sleep(0.1)
        end(folder)

    growing = threading.Thread(target=grow)
    growing.start()
    main(["watch", str(folder), "--every", "0.02", *options])
    growing.join()
    shown = capsys.readouterr()
    assert shown.err == ""
    if options == ["--json"]:
        record = json.loads(shown.out)
        assert record["ended"]
        assert record["result"]["by_objective"][0]["verdict"] == "All is well."
    else:
        assert "trusted: All is well." in shown.out
        assert "1.2500 (cloning twin 0.5000)" in shown.out
        assert (f"{folder}: values 300 of 1,000" in shown.out) == (options == [])


FAULTS = {
    "not-there": (
        lambda folder: folder.joinpath("config.json").unlink(),
        "is not a run: it has no config.json",
    ),
    "objectives": (
        lambda folder: begin(folder, objectives=3),
        "config.json cannot be read: its 'objectives' is not a list",
    ),
    "no objective": (
        lambda folder: begin(folder, objectives=[]),
        "config.json cannot be read: its 'objectives' is empty",
    ),
    "stages": (
        lambda folder: begin(folder, stages=[1, 2]),
        "config.json cannot be read: its 'stages' is not an object",
    ),
    "a list": (lambda folder: (folder / "config.json").write_text("[]"), "cannot be read: it is no object"),
    "config": (lambda folder: (folder / "config.json").write_text("{"), "config.json cannot be read"),
    "metrics": (
        lambda folder: (folder / "metrics.jsonl").write_text('{"step": 1}\n'),
        "metrics.jsonl: line 1 is no line of metrics: it has no 'stage'",
    ),
    "no-object": (
        lambda folder: (folder / "metrics.jsonl").write_text("[1]\n"),
        "line 1 is no line of metrics",
    ),
    "bytes": (
        lambda folder: (folder / "metrics.jsonl").write_bytes(b"\xff\xfe\n"),
        "metrics.jsonl cannot be read",
    ),
    "result": (lambda folder: (folder / "result.json").write_text("[]"), "result.json cannot be read"),
    "half-a-result": (
        lambda folder: (folder / "result.json").write_text("{}"),
        "is not the result of a run: it has no 'members'",
    ),
    "seconds": (lambda folder: end(folder, seconds=None), "of a run: its 'seconds' is not a number"),
}


@pytest.mark.parametrize(("damage", "words"), FAULTS.values(), ids=FAULTS)
def test_a_damaged_folder_is_one_sentence(folder, capsys, damage, words):
    damage(folder)
    assert words in complaint(capsys, "watch", str(folder), "--once")


def test_looks_have_time_between_them(folder, capsys):
    assert "must be positive" in complaint(capsys, "watch", str(folder), "--every", "0")


def test_a_sparkline_rises_with_its_values():
    assert sparkline([1.0, 2.0, 3.0]) == BLOCKS[0] + BLOCKS[4] + BLOCKS[-1]
    assert sparkline([5.0, 5.0]) == BLOCKS[0] * 2
    long = sparkline(np.arange(1000.0).tolist(), 20)
    assert len(long) == 20
    assert list(long) == sorted(long)


@pytest.mark.parametrize("command", ["watch", "report", "evaluate"])
def test_a_folder_of_runs_names_one(folder, capsys, command):
    said = complaint(capsys, command, str(folder.parent))
    assert said == f"{folder.parent} is not a run: it has no config.json; a run inside it is {folder}"
    assert complaint(capsys, command, str(folder / "none")).startswith(
        f"{folder}/none is not a run: there is no"
    )
