"""Small trainings that several tests share; equal shapes let them share compiled programs."""

import itertools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from aetdice import Episodes, Objective, Run, TabularMOMDP, TrainingConfig, bsr, train
from aetdice.learning.setup import readable
from support.problems import random_tables, uniform_episodes

TINY = TrainingConfig().adapted(
    {
        "network.hidden": (8,),
        "dual.steps": 100,
        "dual.batch": 16,
        "iql.steps": 100,
        "iql.batch": 16,
        "extraction.steps": 100,
        "extraction.batch": 16,
        "trainer.chunk": 25,
        "trainer.holdout": 0.0,
    }
)
"""For `tiny_run`, which leaves out what an algorithm does not read."""


def tiny_episodes(seed: int = 0) -> Episodes:
    """Fifty episodes of three steps."""
    return uniform_episodes(random_tables(seed).momdp(), 50, seed)


def tiny_run(**changes: Any) -> Run:
    """A run of a second, once compiled."""
    objective: Objective = changes.pop("objective", bsr(0.5))
    data: Episodes = changes.pop("data", None) or tiny_episodes()
    algorithm: str = changes.pop("algorithm", "aetdice")
    config = readable(changes.pop("config", TINY), algorithm)
    if "beta" not in changes and algorithm in ("aetdice", "optidice", "fairdice"):
        changes["beta"] = 0.1
    if "expectile" not in changes and algorithm == "esr-iql":
        changes["expectile"] = 0.85
    return train(data, objective, **{"algorithm": algorithm, "config": config, "progress": False, **changes})


class Cut(Exception):
    """Stands for a power failure."""


def cut_after(calls: int) -> Callable[..., None]:
    """A function that raises on its n-th call: given as `progress`, it cuts a training off."""
    count = itertools.count(1)

    def call(*arguments: Any) -> None:
        if next(count) == calls:
            raise Cut

    return call


def deterministic_momdp(seed: int, *, states: int = 4, actions: int = 2, horizon: int = 4) -> TabularMOMDP:
    """Random next states and small integer rewards in two objectives that compete."""
    rng = np.random.default_rng(seed)
    return TabularMOMDP.from_arrays(
        rng.integers(0, states, (states, actions)),
        rng.integers(0, 4, (states, actions, 2)).astype(float),
        0,
        horizon,
    )


def leaves(*trees: Any) -> list[np.ndarray]:
    """The arrays of trees, on the host."""
    return [np.asarray(leaf) for leaf in jax.tree.leaves(trees)]


def parameters(run: Run) -> list[np.ndarray]:
    """Every weight of every policy and twin."""
    return leaves([(member.policy.network, member.twin.network) for member in run.members])
