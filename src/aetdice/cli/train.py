"""`aetdice train`, `evaluate` and `resume`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro
from rich.console import Console

from aetdice.algorithms.learners import ALGORITHMS
from aetdice.behaviours.collection import QUALITIES
from aetdice.cli.options import ObjectiveOptions, TaxiOptions
from aetdice.cli.progress import progress
from aetdice.config import TrainingConfig
from aetdice.errors import InputError
from aetdice.jobs import CONFIG, Job, evaluate, start
from aetdice.report.tables import evaluation_report, training_report
from aetdice.sources import COLLECTORS, Source
from aetdice.tracking import TensorBoard, Tracker, WeightsAndBiases


@dataclass(frozen=True)
class SweptObjective(ObjectiveOptions):
    """J = G(E[F(R)]): a named objective, or one written as expressions; several α or ρ are a sweep."""

    alpha: tuple[float, ...] | None = None  # type: ignore[assignment]
    """Of bsr: from 0 (ESR) to 1 (SER)."""
    rho: tuple[float, ...] | None = None  # type: ignore[assignment]
    """Of the Cobb-Douglas objectives."""


@dataclass(frozen=True)
class Train:
    """Learn a policy from an environment's own dataset; several values of an option are a sweep."""

    out: Path
    """Folder for config, metrics, checkpoint, policies and result."""
    goal: SweptObjective
    env: Literal[*COLLECTORS] = "fair-taxi"  # type: ignore[valid-type]
    """Whose dataset to learn from."""
    algorithm: Literal[*ALGORITHMS] = "aetdice"  # type: ignore[valid-type]
    """optidice is linear and fairdice SER, discounted; esr-iql is ESR; bc is cloning."""
    beta: tuple[float, ...] | None = None
    """Strength of the regulariser, in exact units (default 1e-3; optidice, fairdice 1e-3 / (1 - gamma))."""
    expectile: tuple[float, ...] | None = None
    """Of esr-iql (default 0.85)."""
    temperature: tuple[float, ...] | None = None
    """Of esr-iql's advantages (default 14)."""
    learning_rate: tuple[float, ...] = (1e-3,)
    """Of ν and of the policies."""
    seed: tuple[int, ...] = (0,)
    """Of networks and batches."""
    dataset_episodes: int | None = None
    """Episodes to collect (default: the environment's own number)."""
    dataset_seed: int = 0
    """Of the collection."""
    dataset: Literal[*QUALITIES] | None = None  # type: ignore[valid-type]
    """Quality of a body's data (default expert)."""
    episodes: int = 2000
    """Evaluation episodes per policy."""
    tensorboard: bool = False
    """Write TensorBoard files to the folder as well."""
    wandb: str | None = None
    """Log to this Weights & Biases project as well."""
    json: bool = False
    """Print the result file instead of a table."""
    training: TrainingConfig = TrainingConfig()
    taxi: TaxiOptions = TaxiOptions()

    def run(self) -> None:
        if (self.out / CONFIG).exists():
            raise InputError(f"{self.out} holds a run already; continue it with: aetdice resume {self.out}")
        arguments = self.taxi.arguments() if self.env == "fair-taxi" else {}
        source = Source(self.env, self.dataset_episodes, self.dataset_seed, arguments, self.dataset)
        swept = {"beta": self.beta, "expectile": self.expectile, "temperature": self.temperature}
        job = Job(
            source,
            self.goal.given(),
            self.algorithm,
            {name: list(values) for name, values in swept.items() if values is not None},
            self.learning_rate,
            self.seed,
            self.training,
            self.episodes,
        )
        _run(job, self.out, self.json, _trackers(self.tensorboard, self.wandb, self.out, job))


def _trackers(tensorboard: bool, project: str | None, out: Path, job: Job) -> tuple[Tracker, ...]:
    trackers: list[Tracker] = []
    if tensorboard:
        trackers.append(TensorBoard(out / "tensorboard"))
    if project is not None:
        trackers.append(WeightsAndBiases(project, job.record()))
    return tuple(trackers)


@dataclass(frozen=True)
class Resume:
    """Go on with a run that was cut off, to the same result."""

    folder: tyro.conf.Positional[Path]
    tensorboard: bool = False
    """Write TensorBoard files to the folder as well."""
    wandb: str | None = None
    """Log to this Weights & Biases project as well."""
    json: bool = False
    """Print the result file instead of a table."""

    def run(self) -> None:
        job = Job.read(self.folder)
        _run(job, self.folder, self.json, _trackers(self.tensorboard, self.wandb, self.folder, job))


@dataclass(frozen=True)
class Evaluate:
    """Sample episodes with a run's selected policy and its twin."""

    folder: tyro.conf.Positional[Path]
    episodes: int = 2000
    """How many."""
    seed: int = 1234
    """Of actions and environment."""
    member: int | None = None
    """Which one; by default the selected."""
    json: bool = False
    """Print one JSON object instead of a table."""

    def run(self) -> None:
        result = evaluate(self.folder, self.episodes, self.seed, self.member)
        if self.json:
            print(json.dumps(result))
        else:
            Console().print(evaluation_report(result))


def _run(job: Job, folder: Path, as_json: bool, trackers: tuple[Tracker, ...]) -> None:
    with progress() as report:
        result = start(job, folder, report, trackers)
    if as_json:
        print(json.dumps(result))
    else:
        Console().print(training_report(result, folder))
