"""Random MOMDPs with stochastic transitions, of several sizes."""

import functools
from typing import NamedTuple

import numpy as np

from aetdice.exact import TabularMOMDP
from aetdice.studies.strangers.finite import EPISODES, finite_problem
from aetdice.studies.strangers.problem import Problem, fair_objectives, seed_of

FAMILY = "random MOMDP"
LEAST = 0.1
"""Transitions less likely than this are left out."""


class Size(NamedTuple):
    """Of a random problem; the smaller the concentration, the fewer successors."""

    states: int
    actions: int
    horizon: int
    objectives: int = 2
    concentration: float = 0.5
    behaviour: str = "random"


SIZES = {
    "random-1": Size(6, 3, 8),
    "random-2": Size(10, 3, 10),
    "random-3": Size(8, 4, 10, behaviour="mixed"),
    "random-4": Size(6, 2, 6, objectives=3),
    "random-5": Size(12, 4, 8, concentration=0.1, behaviour="mixed"),
    "random-6": Size(20, 3, 12, concentration=0.05),
    "random-7": Size(5, 3, 10, concentration=2.0),
    "random-8": Size(8, 3, 10, behaviour="mixed"),
    "random-13": Size(15, 3, 10, concentration=0.1, behaviour="mixed"),
    "random-14": Size(10, 4, 10),
    "random-15": Size(8, 3, 8, behaviour="mixed"),
    "random-16": Size(9, 3, 9, concentration=0.2, behaviour="mixed"),
    "random-18": Size(7, 3, 8, objectives=3),
}
FEW = {"random-14": 100, "random-15": 60}
"""Episodes of problems with little data."""


def problems() -> list[Problem]:
    return [
        finite_problem(
            name,
            FAMILY,
            fair_objectives(),
            functools.partial(_table, size, seed_of(name)),
            {**size._asdict(), "seed": seed_of(name)},
            size.behaviour,
            FEW.get(name, EPISODES),
        )
        for name, size in SIZES.items()
    ]


def _table(size: Size, seed: int) -> TabularMOMDP:
    return random_momdp(np.random.default_rng(seed), *size[:-1])


def random_momdp(
    rng: np.random.Generator,
    states: int,
    actions: int,
    horizon: int,
    objectives: int = 2,
    concentration: float = 0.5,
) -> TabularMOMDP:
    """Dirichlet transitions, and rewards 0, 1 or 2 by state, action and next state."""
    transition = rng.dirichlet(np.full(states, concentration), (states, actions))
    transition[transition < LEAST] = 0
    transition /= transition.sum(axis=-1, keepdims=True)
    reward = rng.integers(0, 3, (states, actions, states, objectives)).astype(float)
    return TabularMOMDP.from_arrays(transition, reward, 0, horizon)
