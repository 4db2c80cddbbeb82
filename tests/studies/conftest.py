"""What tests of studies share: a training that trains nothing, tiny settings, and tables as text."""

import dataclasses
import io

import pytest
from rich.console import Console
from support.untrained import untrained

from aetdice.config import TrainingConfig
from aetdice.data import transform_episodes
from aetdice.studies import populations
from aetdice.studies.reporting import report
from aetdice.studies.study import Effort, with_value_stage

TINY = TrainingConfig().adapted(
    {
        "network.hidden": (4,),
        "network.fourier": 2,
        "dual.refit": "none",
        "extraction.steps": 20,
        "extraction.batch": 8,
        "trainer.chunk": 20,
        "trainer.holdout": 0.25,
    }
)


@pytest.fixture
def tiny():
    """An effort that is far too small to learn anything; its grids are as wide as those of another."""

    def shrink(effort: Effort, **changes) -> Effort:
        grids = effort.grids | {"aetdice": {"beta": (1.0, 0.3)}}
        base = with_value_stage(TINY, 20, 8)
        small = {"grids": grids, "config": base}
        return dataclasses.replace(effort, **{**small, **changes})

    return shrink


def stub(dataset, objectives, *, transform=None, out, progress, **others):
    """As `aetdice.train` with a folder: policies as they were initialised, saved as a run is."""
    del progress
    seen = dataset if transform is None else transform_episodes(dataset, transform)
    run = untrained(seen, objectives, **others)
    for member in run.members:
        member.policy.transform = member.twin.transform = transform
        if others["algorithm"] != "esr-iql":
            member.diagnostics["claimed_value"] = 7.0
    run.save(out)
    return run


@pytest.fixture
def without_training(monkeypatch):
    """Studies train nothing; give None back to `populations.train` to see that nothing is trained."""
    monkeypatch.setattr(populations, "train", stub)
    return monkeypatch


@pytest.fixture
def shown():
    """The report of a study as text, with words that were broken over lines joined again."""

    def show(study, results, folder) -> str:
        console = Console(width=260, record=True, file=io.StringIO())
        console.print(report(study, results, folder))
        return " ".join(console.export_text().split())

    return show
