"""A run that is cut off, at whatever moment, goes on to the same bits."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from support.training import TINY, Cut, cut_after, parameters, tiny_episodes, tiny_run

from aetdice import InputError, bsr
from aetdice.cli import main
from aetdice.learning import checkpointing, stages
from aetdice.learning.checkpointing import CHECKPOINT
from aetdice.learning.trackers import METRICS

TINY_TAXI = """
--size 3 --origins 0,0 2,2 --destinations 0,1 2,1 --start 1,1 --horizon 5 --dataset-episodes 30
--objective bsr --alpha 0.5 --beta 0.1 --episodes 50 --set network.hidden=8 trainer.chunk=3
dual.batch=16 dual.steps=120 extraction.batch=16 extraction.steps=120
"""


@pytest.fixture
def eager(monkeypatch):
    """A checkpoint after every chunk, however long it takes."""
    monkeypatch.setattr(checkpointing, "SAVING", 0)


@pytest.fixture(scope="module")
def whole():
    """What an uninterrupted run without a folder learns."""
    return parameters(tiny_run())


def same(one, other) -> bool:
    return len(one) == len(other) and all(map(np.array_equal, one, other))


# 4 chunks of the dual, 1 refitted member, 4 chunks of cloning.


@pytest.mark.parametrize("reports", [1, 3, 4, 5, 6, 8, 9])
def test_run_cut_after_a_report_resumes_to_the_same_bits(eager, whole, tmp_path, reports):
    with pytest.raises(Cut):
        tiny_run(out=tmp_path, progress=cut_after(reports))
    assert same(parameters(tiny_run(out=tmp_path)), whole)


def test_run_that_saves_seldom_resumes_to_the_same_bits(whole, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpointing, "SAVING", 1e9)
    with pytest.raises(Cut):
        tiny_run(out=tmp_path, progress=cut_after(3))
    assert same(parameters(tiny_run(out=tmp_path)), whole)


@pytest.mark.parametrize("saves", [1, 2, 5, 7])
def test_run_cut_before_a_checkpoint_resumes_to_the_same_bits(eager, whole, tmp_path, monkeypatch, saves):
    cut, save = cut_after(saves), checkpointing.save_tree

    def failing(path, tree):
        cut()
        save(path, tree)

    monkeypatch.setattr(checkpointing, "save_tree", failing)
    with pytest.raises(Cut):
        tiny_run(out=tmp_path)
    monkeypatch.setattr(checkpointing, "save_tree", save)
    assert same(parameters(tiny_run(out=tmp_path)), whole)


def test_run_cut_again_and_again_resumes_to_the_same_bits(whole, tmp_path):
    for _ in range(9):
        with pytest.raises(Cut):
            tiny_run(out=tmp_path, progress=cut_after(1))
    assert same(parameters(tiny_run(out=tmp_path)), whole)


def test_checkpoint_of_a_finished_run_gives_it_again(whole, tmp_path):
    tiny_run(out=tmp_path)
    seen = []
    assert same(parameters(tiny_run(out=tmp_path, progress=lambda *progress: seen.append(progress))), whole)
    assert seen == []


@pytest.mark.parametrize(
    "change",
    [
        {"beta": 0.2},
        {"objective": bsr(0.6)},
        {"seed": 1},
        {"learning_rate": 2e-3},
        {"data": tiny_episodes(1)},
        {"config": TINY.adapted({"network.hidden": (4,)})},
    ],
    ids=["beta", "objective", "seed", "learning-rate", "data", "widths"],
)
def test_checkpoint_of_another_run_is_refused(tmp_path, change):
    with pytest.raises(Cut):
        tiny_run(out=tmp_path, progress=cut_after(1))
    with pytest.raises(InputError, match="was written by a run with"):
        tiny_run(out=tmp_path, **change)


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "text", "leafless"])
def test_damaged_checkpoint_is_refused(tmp_path, damage):
    path = tmp_path / CHECKPOINT
    with pytest.raises(Cut):
        tiny_run(out=tmp_path, progress=cut_after(1))
    content = bytearray(path.read_bytes())
    if damage == "leafless":
        np.savez(path, other=np.zeros(3))
    else:
        content[len(content) // 2] ^= 0xFF
        path.write_bytes(
            {"empty": b"", "cut": content[:-100], "flipped": bytes(content), "text": b"not arrays"}[damage]
        )
    with pytest.raises(InputError, match="is not a checkpoint"):
        tiny_run(out=tmp_path)


# Real processes, really killed.


def policies(folder: Path) -> list[np.ndarray]:
    arrays = []
    for path in sorted(folder.glob("*-*.npz")):
        with np.load(path) as archive:
            arrays += [archive[name] for name in sorted(archive.files) if name != "description"]
    return arrays


def killed(arguments: list[str], folder: Path, rows: int, pause: float) -> bool:
    """Start the command line and kill it a moment after its metrics have grown by some rows."""

    def written() -> int:
        metrics = folder / METRICS
        return len(metrics.read_text().splitlines()) if metrics.exists() else 0

    goal = written() + rows
    with subprocess.Popen(
        [sys.executable, "-c", "from aetdice.cli import main; main()", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
    ) as process:
        while process.poll() is None and written() < goal:
            time.sleep(0.002)
        time.sleep(pause)
        process.send_signal(signal.SIGKILL)
        process.wait()
    return process.returncode == -signal.SIGKILL


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "whole"
    main(["train", "--out", str(folder), *TINY_TAXI.split()])
    return folder


def test_killed_process_resumes_to_the_same_bits(finished, tmp_path):
    chance = random.Random(15)
    folder = tmp_path / "cut"
    rows, pause = chance.randrange(1, 75), chance.uniform(0, 0.02)
    assert killed(["train", "--out", str(folder), *TINY_TAXI.split()], folder, rows, pause), (
        "ended before the kill"
    )
    main(["resume", str(folder)])
    assert policies(folder)
    assert same(policies(folder), policies(finished)), f"killed after {rows} rows and {pause} s"


@pytest.mark.slow
def test_process_killed_twenty_times_resumes_to_the_same_bits(finished, tmp_path):
    chance, folder = random.Random(0), tmp_path / "cut"
    kills = killed(["train", "--out", str(folder), *TINY_TAXI.split()], folder, 1, 0)
    for _ in range(19):
        kills += killed(["resume", str(folder)], folder, chance.randint(1, 2), chance.uniform(0, 0.01))
    assert kills == 20
    main(["resume", str(folder)])
    assert same(policies(folder), policies(finished))


def test_finished_run_is_evaluated(finished, capsys):
    main(["evaluate", str(finished), "--episodes", "50"])
    assert "trained for BSR" in capsys.readouterr().out


def test_training_into_a_folder_that_holds_a_run_is_refused(finished, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["train", "--out", str(finished), *TINY_TAXI.split()])
    assert stopped.value.code == 2
    assert capsys.readouterr().err == (
        f"error: {finished} holds a run already; continue it with: aetdice resume {finished}\n"
    )


def test_a_dual_stops_when_its_value_is_flat_and_resumes_to_the_same_bits(eager, tmp_path, monkeypatch):
    """β falls in the first 25 of 100 updates; then at least ten more are looked at."""
    config = TINY.adapted({"dual.until_flat": True, "dual.annealing": 0.25, "trainer.chunk": 5})
    monkeypatch.setattr(stages, "FLAT_UPDATES", 10)

    def updates(flat: float, name: str, **options):
        monkeypatch.setattr(stages, "FLAT", flat)
        run = tiny_run(out=tmp_path / name, config=config, **options)
        found = (tmp_path / name / METRICS).read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in found]
        return [row["step"] for row in rows if row["stage"] == "values"], parameters(run)

    never, _ = updates(-1.0, "never")
    assert never == list(range(5, 101, 5))
    at_once, learned = updates(1e9, "at once")
    assert at_once == [*range(5, 35, 5), 100]
    with pytest.raises(Cut):
        updates(1e9, "cut", progress=cut_after(5))
    _, resumed = updates(1e9, "cut")
    assert same(resumed, learned)
