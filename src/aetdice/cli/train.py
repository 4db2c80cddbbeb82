"""`aetdice train`, `evaluate` and `resume`."""

import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from aetdice.algorithms import ALGORITHMS
from aetdice.cli.data import LogOptions
from aetdice.cli.options import ObjectiveOptions, Shown, TaxiOptions
from aetdice.config import TrainingConfig, parse_setting
from aetdice.data import Episodes
from aetdice.data.urls import cleaned
from aetdice.datasets import (
    COLLECTORS,
    QUALITIES,
    environment_of,
    load_dataset,
    name_of_environment,
    space_of,
)
from aetdice.errors import InputError
from aetdice.evaluation import make_objectives, swept_objectives
from aetdice.evaluation.scores import EPISODES, SEED
from aetdice.files import versions, write_json
from aetdice.learning.folder import REQUEST, RESULT, read_result
from aetdice.learning.inputs import set_aside
from aetdice.learning.loading import load_run
from aetdice.learning.run import Run, summarise
from aetdice.learning.trackers import TensorBoard, Tracker, WeightsAndBiases
from aetdice.learning.training import resume, train
from aetdice.objectives import Objective
from aetdice.progress import listening
from aetdice.report.tables import evaluation_table, training_table


@dataclass(frozen=True)
class SweptObjective(ObjectiveOptions):
    """J = G(E[F(R)]): a named objective, or one written as expressions; several α or ρ are a sweep."""

    alpha: tuple[float, ...] | None = None  # type: ignore[assignment]
    """Of bsr: from 0 (ESR) to 1 (SER)."""
    rho: tuple[float, ...] | None = None  # type: ignore[assignment]
    """Of the Cobb-Douglas objectives."""


@dataclass(frozen=True)
class Train:
    """Learn a policy from a log or an environment's own dataset; several values of an option are a sweep."""

    out: Path
    """Folder for config, metrics, checkpoint, policies and result."""
    goal: SweptObjective
    data: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="DATA")] = None
    """Logged episodes: a file, a folder or pattern of files, a URL of one, a Minari id on this machine; or an
    environment's name."""
    env: Literal[*COLLECTORS] | None = None  # type: ignore[valid-type]
    """The environment whose own dataset to learn from (default fair-taxi, without DATA)."""
    log: LogOptions = LogOptions()
    algorithm: Literal[*ALGORITHMS] = "aetdice"  # type: ignore[valid-type]
    """optidice is linear and fairdice SER, discounted; esr-iql is ESR; bc is cloning."""
    beta: tuple[float, ...] | None = None
    """Strength of the regulariser, in exact units (default 1e-3; optidice, fairdice 1e-3 / (1 - gamma))."""
    expectile: tuple[float, ...] | None = None
    """Of esr-iql (default 0.85)."""
    temperature: tuple[float, ...] | None = None
    """Of esr-iql's advantages (default 14)."""
    sample_size: tuple[float, ...] | None = None
    """Of episode-weighting: the share of the episodes that its weights rest on (default 0.01)."""
    learning_rate: tuple[float, ...] = (1e-3,)
    """Of ν and of the policies."""
    seed: tuple[int, ...] = (0,)
    """Of networks and batches."""
    effort: Literal["quick", "standard", "thorough"] | None = None
    """How long to choose what is not set, and to train (default standard)."""
    minutes: float | None = None
    """The same by about how many minutes it may take on this machine."""
    config: Path | None = None
    """TOML file with settings in the tables network, dual, iql, extraction and trainer."""
    settings: Annotated[tuple[str, ...], tyro.conf.arg(name="set")] = ()
    """Settings by name, for example dual.annealing=0.3 network.hidden=256,256."""
    dataset_episodes: int | None = None
    """Episodes to collect (default: the environment's own number)."""
    dataset_seed: int | None = None
    """Of the collection (default 0)."""
    dataset: Literal[*QUALITIES] | None = None  # type: ignore[valid-type]
    """Quality of the data: mixed (default) or shifts; of a body's, expert (default), amateur or unstable."""
    episodes: int = EPISODES
    """Evaluation episodes per policy."""
    tensorboard: bool = False
    """Write TensorBoard files to the folder as well."""
    wandb: str | None = None
    """Log to this Weights & Biases project as well."""
    shown: Shown = Shown()
    taxi: TaxiOptions = TaxiOptions()

    def run(self) -> None:
        if (self.out / REQUEST).exists():
            raise InputError(f"{self.out} holds a run already; continue it with: aetdice resume {self.out}")
        if self.episodes < 1:
            raise InputError(f"at least one evaluation episode is needed, not {self.episodes}")
        config = self.training_config()
        dataset = self.load()
        objectives, horizon = self.aims(dataset)
        run = train(
            dataset,
            objectives,
            algorithm=self.algorithm,
            horizon=horizon,
            beta=self.beta,
            expectile=self.expectile,
            temperature=self.temperature,
            sample_size=self.sample_size,
            learning_rate=self.learning_rate,
            seed=self.seed,
            effort=self.effort,
            minutes=self.minutes,
            config=config,
            out=self.out,
            progress=not self.shown.quiet,
            trackers=_trackers(self.tensorboard, self.wandb, self.out),
            notes={"command": ["aetdice", *cleaned(sys.argv[1:])], "episodes": self.episodes},
        )
        _finish(run, self.out, self.shown)

    def load(self) -> Episodes:
        """The dataset; what was decided about a log is shown."""
        if self.data is not None and self.env is not None:
            raise InputError(f"DATA is {self.data} and --env {self.env}; give one of them")
        name = self.data or self.env or "fair-taxi"
        own = name_of_environment(name)
        arguments = self.taxi.arguments_for(own) if own else self.log.horizon_of(self.taxi.arguments())
        dataset = load_dataset(
            name,
            **self.log.given(),
            episodes=self.dataset_episodes,
            seed=self.dataset_seed,
            quality=self.dataset,
            **arguments,
        )
        self.shown.say(*dataset.notes)
        return dataset

    def aims(self, dataset: Episodes) -> tuple[list[Objective], int]:
        """The objectives and the horizon: the environment's, or what the log shows."""
        if dataset.origin is not None and "env" in dataset.origin:
            env = environment_of(dataset.origin)
            return make_objectives(self.goal.given(), env), env.horizon
        horizon = dataset.horizon or int(dataset.lengths.max())
        kept = "a tenth of the episodes, where nothing else tells settings apart"
        share = self.training_config().trainer.holdout
        kept = kept if share is None else f"{share:.0%} of the episodes"
        names = ", ".join(f"r{index} {name}" for index, name in enumerate(dataset.objectives))
        self.shown.say(f"objectives: {names}")
        report = len(dataset) - len(set_aside(dataset, self.training_config())[0])
        self.shown.say(
            f"horizon: {horizon} steps; held out for choosing: {kept}; kept for the estimate: {report:,} of "
            f"{len(dataset):,} episodes"
        )
        return swept_objectives(self.goal.given(), len(dataset.objectives), horizon), horizon

    def training_config(self) -> TrainingConfig:
        """The file's settings, then those of the command line."""
        config = TrainingConfig() if self.config is None else _read_config(self.config)
        return config.adapted(dict(map(parse_setting, self.settings)))


def _read_config(path: Path) -> TrainingConfig:
    try:
        return TrainingConfig.from_record(tomllib.loads(path.read_text(encoding="utf-8")))
    except ValueError as error:  # of the file's text, its TOML or its settings
        raise InputError(f"{path}: {error}") from error


def _trackers(tensorboard: bool, project: str | None, out: Path) -> tuple[Tracker, ...]:
    trackers: list[Tracker] = []
    if tensorboard:
        trackers.append(TensorBoard(out / "tensorboard"))
    if project is not None:
        trackers.append(WeightsAndBiases(project, {"folder": str(out)}))
    return tuple(trackers)


@dataclass(frozen=True)
class Resume:
    """Go on with a run that was cut off, to the same result."""

    folder: tyro.conf.Positional[Path]
    tensorboard: bool = False
    """Write TensorBoard files to the folder as well."""
    wandb: str | None = None
    """Log to this Weights & Biases project as well."""
    shown: Shown = Shown()

    def run(self) -> None:
        trackers = _trackers(self.tensorboard, self.wandb, self.folder)
        run = resume(self.folder, progress=not self.shown.quiet, trackers=trackers)
        _finish(run, self.folder, self.shown)


@dataclass(frozen=True)
class Evaluate:
    """Sample episodes with a run's selected policy and its twin."""

    folder: tyro.conf.Positional[Path]
    episodes: int = EPISODES
    """How many."""
    seed: int = SEED
    """Of actions and environment."""
    member: int | None = None
    """Which one; by default the selected."""
    shown: Shown = Shown()

    def run(self) -> None:
        with self.shown.progress() as progress, listening(progress):
            result = self.result()
        self.shown.answer(result, lambda: evaluation_table(result))

    def result(self) -> dict[str, Any]:
        run = load_run(self.folder)
        env = environment_of(run.request["dataset"]["origin"])
        index = run.selections[0].chosen if self.member is None else self.member
        comparison = run.evaluate(env, self.episodes, self.seed, member=index)
        objective = run.members[index].objective.name
        summaries = read_result(self.folder)["by_objective"]
        return {
            "objective": objective,
            "objectives": env.objectives,
            "member": index,
            "seed": self.seed,
            "policy": comparison.policy.record(),
            "twin": comparison.twin.record(),
            "exact_score": next((s["exact_score"] for s in summaries if s["objective"] == objective), None),
            "versions": versions(),
        }


def _finish(run: Run, folder: Path, shown: Shown) -> None:
    """Evaluate all members, write the result and show it."""
    origin = run.request["dataset"]["origin"]
    if "file" in origin:
        scored = summarise(run)
    else:
        env = environment_of(origin)
        with shown.progress() as progress, listening(progress):
            scored = summarise(run, env, space_of(env), run.request["notes"].get("episodes", EPISODES))
    result = {**scored, "config": run.request}
    write_json(folder / RESULT, result)
    shown.answer(result, lambda: training_table(result, folder))
