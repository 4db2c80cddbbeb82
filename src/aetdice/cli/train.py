"""`aetdice train`, `evaluate` and `resume`."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import tyro
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from aetdice.cli.options import TaxiOptions
from aetdice.envs.taxi_data import EPISODES
from aetdice.errors import InputError
from aetdice.jobs import CONFIG, Job, evaluate, start
from aetdice.preparation import TrainingConfig
from aetdice.report.tables import evaluation_report, training_report
from aetdice.sources import Source
from aetdice.training import Report


@dataclass(frozen=True)
class Train:
    """Learn a policy from an environment's own dataset; several values of an option are a sweep."""

    out: Path
    """Folder for config, metrics, checkpoint, policies and result."""
    env: Literal["fair-taxi"] = "fair-taxi"
    """Whose dataset to learn from."""
    algorithm: Literal["aetdice"] = "aetdice"
    objective: str | None = None
    """lsr, ser, esr, bsr, …"""
    alpha: tuple[float, ...] = ()
    """Of bsr."""
    rho: tuple[float, ...] = ()
    """Of the Cobb-Douglas objectives."""
    weights: tuple[float, ...] | None = None
    """One per objective, for lsr, ser, esr and bsr."""
    threshold: float | None = None
    """Below it logarithms and powers are continued (default 1)."""
    utility: str | None = None
    """One's own F in r0, r1, … and horizon."""
    aggregation: str = "linear"
    """G beside one's own F."""
    beta: tuple[float, ...] = (3e-4,)
    """Strength of the regulariser, in exact units."""
    learning_rate: tuple[float, ...] = (1e-3,)
    """Of ν and of the policies."""
    seed: tuple[int, ...] = (0,)
    """Of networks and batches."""
    dataset_episodes: int = EPISODES
    """Episodes to collect."""
    dataset_seed: int = 0
    """Of the collection."""
    episodes: int = 2000
    """Evaluation episodes per policy."""
    json: bool = False
    """Print the result file instead of a table."""
    training: TrainingConfig = TrainingConfig()
    taxi: TaxiOptions = TaxiOptions()

    def run(self) -> None:
        if (self.out / CONFIG).exists():
            raise InputError(f"{self.out} holds a run already; continue it with: aetdice resume {self.out}")
        source = Source(self.env, self.dataset_episodes, self.dataset_seed, self.taxi.arguments())
        job = Job(
            source, self._objective(), self.beta, self.learning_rate, self.seed, self.training, self.episodes
        )
        _run(job, self.out, self.json)

    def _objective(self) -> dict[str, Any]:
        if self.utility is not None:
            threshold = 1.0 if self.threshold is None else self.threshold
            return {"utility": self.utility, "aggregation": self.aggregation, "threshold": threshold}
        if self.objective is None:
            raise InputError(
                'say which objective: --objective esr | ser | bsr --alpha 0.5 | …, or --utility "…"'
            )
        options: dict[str, Any] = {"name": self.objective}
        for name in ("alpha", "rho"):
            values = getattr(self, name)
            if values:
                options[name] = values[0] if len(values) == 1 else list(values)
        if self.weights is not None:
            options["weights"] = list(self.weights)
        if self.threshold is not None:
            options["threshold"] = self.threshold
        return options


@dataclass(frozen=True)
class Resume:
    """Go on with a run that was cut off, to the same result."""

    folder: tyro.conf.Positional[Path]
    json: bool = False
    """Print the result file instead of a table."""

    def run(self) -> None:
        _run(Job.read(self.folder), self.folder, self.json)


@dataclass(frozen=True)
class Evaluate:
    """Sample episodes with a run's selected policy and its twin."""

    folder: tyro.conf.Positional[Path]
    episodes: int = 2000
    """How many."""
    seed: int = 1234
    """Of actions and environment."""
    json: bool = False
    """Print one JSON object instead of a table."""

    def run(self) -> None:
        result = evaluate(self.folder, self.episodes, self.seed)
        if self.json:
            print(json.dumps(result))
        else:
            Console().print(evaluation_report(result))


def _run(job: Job, folder: Path, as_json: bool) -> None:
    with _progress() as report:
        result = start(job, folder, report)
    if as_json:
        print(json.dumps(result))
    else:
        Console().print(training_report(result, folder))


class SpeedColumn(ProgressColumn):
    """Updates per second, once known."""

    def render(self, task: Task) -> Text:
        return Text("" if task.speed is None else f"{task.speed:.0f}/s")


@contextmanager
def _progress() -> Iterator[Report]:
    """A bar per stage on stderr, with speed and remaining time."""
    columns = (
        TextColumn("{task.description:>8}"),
        BarColumn(),
        MofNCompleteColumn(),
        SpeedColumn(),
        TimeRemainingColumn(),
    )
    progress, tasks = Progress(*columns, console=Console(file=sys.stderr)), dict[str, Any]()

    def report(stage: str, step: int, total: int, metrics: dict[str, Any]) -> None:
        del metrics
        progress.start()  # not before there is something to show, so that an error stands alone
        if stage not in tasks:
            tasks[stage] = progress.add_task(stage, total=total)
        progress.update(tasks[stage], completed=step)

    try:
        yield report
    finally:
        if tasks:
            progress.stop()
