"""`aetdice behaviours` and `aetdice collect`: policies of the D4MORL bodies, and their datasets."""

import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import tyro
from jaxtyping import Float
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from aetdice.behaviours import RECIPES, load_behaviour, quick_recipe, train_behaviour
from aetdice.behaviours.collection import QUALITIES, TRAJECTORIES, collect_body, collection_facts
from aetdice.behaviours.pace import Pace
from aetdice.cli.options import Quiet, Shown
from aetdice.data import Episode, load_episodes, save_episodes
from aetdice.envs.mujoco import BODIES, find_body
from aetdice.errors import InputError
from aetdice.evaluation.estimates import spread
from aetdice.report.terminal import console

BodyName = Literal[*BODIES]  # type: ignore[valid-type]


@dataclass(frozen=True)
class TrainBehaviour:
    """Train a policy that follows any preference; a training that was cut off goes on."""

    body: tyro.conf.Positional[BodyName]
    out: Path
    """File for the policy; the checkpoint lies beside it."""
    steps: int | None = None
    """Environment steps (default: the body's own number)."""
    seed: int | None = None
    """Of networks, exploration and preferences (default: that of the shipped policy)."""
    threads: int | None = None
    """Of the simulation (default: all cores)."""
    quick: bool = False
    """A few minutes on two cores: enough to see learning."""
    said: Quiet = Quiet()

    def run(self) -> None:
        recipe = quick_recipe(self.body) if self.quick else RECIPES[self.body]
        recipe = recipe.adapted(self.steps, self.seed)
        pace, bar = Pace(find_body(self.body).objectives), _bar(self.body, self.said.quiet)
        task = bar.add_task("", total=recipe.iterations * recipe.batch)

        def report(steps: int, total: int, returns: Float[np.ndarray, " m"] | None, upright: float) -> None:
            bar.start()  # not before there is something to show, so that an error stands alone
            pace.hear(steps, total, returns, upright)
            bar.update(task, completed=steps, description=f"{pace.text()}, {pace.clock()} to go")

        try:
            behaviour = train_behaviour(self.body, recipe, self.out, report, self.threads)
        finally:
            if bar.live.is_started:
                bar.stop()
        print(behaviour.text())


@dataclass(frozen=True)
class ShowBehaviour:
    """The card of a policy: how it was trained, and its returns over preferences."""

    body: tyro.conf.Positional[BodyName]
    behaviour: Path | None = None
    """Its file (default: the one that comes with the package)."""
    shown: Shown = Shown()

    def run(self) -> None:
        policy = load_behaviour(self.body, self.behaviour)
        card = {name: getattr(policy, name).tolist() for name in ("preferences", "returns", "upright")}
        details = policy.details
        about = f"{details['method']}, {details['steps']:,} steps, seed {details['seed']}"
        self.shown.answer(
            {"body": policy.body, "sha256": policy.sha256, **details, **card},
            lambda: [about, *policy.text().splitlines()],
        )


BehavioursCommand: Any = (
    Annotated[TrainBehaviour, tyro.conf.subcommand("train")]
    | Annotated[ShowBehaviour, tyro.conf.subcommand("show")]
)


@dataclass(frozen=True)
class Collect:
    """Write a dataset of a body by D4MORL's protocol to an episode store."""

    body: tyro.conf.Positional[BodyName]
    out: Path
    """Folder for the episodes."""
    quality: Literal[*QUALITIES] = "expert"  # type: ignore[valid-type]
    """Experts act as trained; amateurs' actions are scaled at random; a quarter of the unstable are weak."""
    trajectories: int = TRAJECTORIES
    """How many."""
    seed: int = 0
    """Equal seeds give equal datasets."""
    behaviour: Path | None = None
    """The policy's file (default: the one that comes with the package)."""
    threads: int | None = None
    """Of the simulation (default: all cores)."""
    shown: Shown = Shown()

    def run(self) -> None:
        if self.out.exists():
            raise InputError(f"{self.out} exists; delete it or choose another name")
        policy = load_behaviour(self.body, self.behaviour)
        found = collect_body(self.body, self.quality, self.trajectories, self.seed, policy, self.threads)
        facts = collection_facts(policy, self.quality, self.trajectories, self.seed)
        began = time.monotonic()
        save_episodes(self.out, self._counted(found), objectives=policy.objectives, facts=facts)
        seconds = time.monotonic() - began
        episodes = load_episodes(self.out, verify=False)
        returns = np.add.reduceat(episodes.rewards, episodes.starts)
        named = zip(policy.objectives, returns.T, strict=True)
        record = {
            "folder": str(self.out),
            "returns": {name: spread(column.tolist()) for name, column in named},
            "upright": float(1 - episodes.terminated.mean()),
            "steps": episodes.steps,
            "seconds": seconds,
        }
        self.shown.answer(record, lambda: _collected(record))

    def _counted(self, episodes: Iterable[Episode]) -> Iterator[Episode]:
        with self.shown.progress() as progress:
            for count, episode in enumerate(episodes, start=1):
                if progress is not None:
                    progress("trajectories", count, self.trajectories, {})
                yield episode


def _collected(record: dict[str, Any]) -> list[str]:
    spreads = [
        f"{name:>10} {found['mean']:10.1f}" + ("" if found["sd"] is None else f" ± {found['sd']:.1f}")
        for name, found in record["returns"].items()
    ]
    steps, seconds = record["steps"], record["seconds"]
    speed = f"{steps:,} steps in {seconds:.0f} s ({steps / seconds:,.0f} steps/s): {record['folder']}"
    return [*spreads, f"{'upright':>10} {record['upright']:10.1%}", speed]


def _bar(title: str, quiet: bool) -> Progress:
    columns = (
        TextColumn(f"{title:>12}"),
        BarColumn(20),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
    )
    return Progress(*columns, console=console(sys.stderr), disable=quiet)
