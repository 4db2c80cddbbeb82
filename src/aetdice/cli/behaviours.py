"""`aetdice behaviours` and `aetdice collect`: policies of the D4MORL bodies, and their datasets."""

import json
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import tyro
from jaxtyping import Float
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from aetdice.behaviours import RECIPES, load_behaviour, quick_recipe, train_behaviour
from aetdice.behaviours.collection import QUALITIES, TRAJECTORIES, collect_body, collection_facts
from aetdice.behaviours.pace import Pace
from aetdice.data import Episode, load_episodes, save_episodes
from aetdice.envs.mujoco import BODIES, find_body
from aetdice.errors import InputError
from aetdice.evaluation.estimates import spread

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

    def run(self) -> None:
        recipe = quick_recipe(self.body) if self.quick else RECIPES[self.body]
        recipe = recipe.adapted(self.steps, self.seed)
        pace, bar = Pace(find_body(self.body).objectives), _bar(self.body)
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
    json: bool = False
    """Print one JSON object instead of a table."""

    def run(self) -> None:
        policy = load_behaviour(self.body, self.behaviour)
        if self.json:
            card = {name: getattr(policy, name).tolist() for name in ("preferences", "returns", "upright")}
            print(json.dumps({"body": policy.body, "sha256": policy.sha256, **policy.details, **card}))
        else:
            details = policy.details
            print(f"{details['method']}, {details['steps']:,} steps, seed {details['seed']}")
            print(policy.text())


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

    def run(self) -> None:
        if self.out.exists():
            raise InputError(f"{self.out} exists; delete it or choose another name")
        policy = load_behaviour(self.body, self.behaviour)
        found = collect_body(self.body, self.quality, self.trajectories, self.seed, policy, self.threads)
        facts = collection_facts(policy, self.quality, self.trajectories, self.seed)
        began = time.monotonic()
        save_episodes(self.out, self._shown(found), objectives=policy.objectives, facts=facts)
        seconds = time.monotonic() - began
        episodes = load_episodes(self.out, verify=False)
        returns = np.add.reduceat(episodes.rewards, episodes.starts)
        for name, column in zip(policy.objectives, returns.T, strict=True):
            mean, sd = spread(column.tolist()).values()
            print(f"{name:>10} {mean:10.1f}" + ("" if sd is None else f" ± {sd:.1f}"))
        print(f"{'upright':>10} {1 - episodes.terminated.mean():10.1%}")
        speed = episodes.steps / seconds
        print(f"{episodes.steps:,} steps in {seconds:.0f} s ({speed:,.0f} steps/s): {self.out}")

    def _shown(self, episodes: Iterable[Episode]) -> Iterator[Episode]:
        with _bar(f"{self.body}, {self.quality}") as bar:
            yield from bar.track(episodes, total=self.trajectories, description="trajectories")


def _bar(title: str) -> Progress:
    columns = (
        TextColumn(f"{title:>12}"),
        BarColumn(20),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
    )
    return Progress(*columns, console=Console(file=sys.stderr))
