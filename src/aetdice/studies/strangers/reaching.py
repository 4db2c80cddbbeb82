"""Continuous states and actions with an exact optimum: who moves fastest to one goal and then to another.

Positions are in units of the longest step. Each goal is a box of half-width 1/4 around a point with whole
coordinates, in which a step earns 1. From anywhere in one box to the next it takes as many steps as between
the points: shorter ones never help, and no place off the lattice is nearer to everything than some place on
it. So the best policy on the lattice is the best of all, and it is computed exactly.
"""

import functools
import itertools
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from aetdice.data import Episodes
from aetdice.envs.batched import check_actions, check_count
from aetdice.exact import TabularMOMDP, enumerate_space, solve
from aetdice.studies.strangers.finite import Outcome, table_of
from aetdice.studies.strangers.problem import Problem, World, fair_objectives
from aetdice.studies.strangers.sampling import sampled_score

FAMILY = "reaching"
EPISODES = 1_500
HALF = 0.25
"""Half the width of a goal."""
RATES = (0.0, 0.1, 0.3)
"""Probabilities of a random action; each episode keeps one of them."""
NOISE = 0.1
"""Standard deviation that is added to the actions of all."""


class Task(NamedTuple):
    """Where the goals are; every episode starts near the origin."""

    goals: tuple[tuple[int, ...], ...]
    horizon: int
    start_noise: float = 0.0
    calm: float = 1.0
    """Probability that a step happens; otherwise the position stays."""


TASKS = {
    "reach-line": Task(((-3,), (3,)), 20),
    "reach-line-near": Task(((-2,), (4,)), 16, start_noise=0.2),
    "reach-line-gusts": Task(((-2,), (3,)), 24, calm=0.7),
    "reach-plane": Task(((-2, 2), (3, 1)), 20),
    "reach-plane-three": Task(((-2, 0), (2, 2), (1, -3)), 28),
    "reach-plane-gusts": Task(((-2, 1), (2, -1)), 24, calm=0.8),
    "reach-line-far": Task(((-5,), (4,)), 26),
    "reach-line-three": Task(((-2,), (1,), (4,)), 24),
    "reach-plane-breeze": Task(((-2, 1), (2, 1)), 20, calm=0.95),
    "reach-plane-few": Task(((2, 2), (-3, 0)), 22),
    "reach-plane-wide": Task(((-3, 2), (3, 3)), 24),
}
FEW = {"reach-plane-few": 60}
"""Episodes of problems with little data."""


class Reaching:
    """A `BatchedEnvironment`: x' = x + clip(a, ±1), unless the wind holds it."""

    def __init__(self, task: Task) -> None:
        self.task, self.horizon = task, task.horizon
        self.objectives = tuple(f"goal{i}" for i in range(len(task.goals)))
        self.goals = np.array(task.goals, dtype=float)
        self.action_shape = (self.goals.shape[1],)
        self.limit = np.abs(self.goals).max() + 1.0
        self._place, self._rng = np.zeros((0, self.goals.shape[1])), np.random.default_rng(0)

    def reset(self, count: int, seed: int) -> Float[np.ndarray, "count o"]:
        check_count(count)
        self._rng = np.random.default_rng(seed)
        noise = self.task.start_noise
        self._place = self._rng.uniform(-noise, noise, (count, self.goals.shape[1]))
        return self._place.astype(np.float32)

    def step(
        self, actions: Float[np.ndarray, "count a"]
    ) -> tuple[Float[np.ndarray, "count o"], Float[np.ndarray, "count m"], Bool[np.ndarray, " count"]]:
        check_actions(len(self._place), actions)
        moves = self._rng.random(len(actions)) < self.task.calm
        step = np.clip(np.asarray(actions, float), -1, 1)
        self._place = np.clip(self._place + step * moves[:, None], -self.limit, self.limit)
        apart = np.abs(self._place[:, None] - self.goals[None]).max(axis=2)
        return self._place.astype(np.float32), (apart <= HALF).astype(float), np.zeros(len(actions), bool)


def problems() -> list[Problem]:
    return [
        Problem(
            name,
            FAMILY,
            fair_objectives(),
            FEW.get(name, EPISODES),
            task._asdict(),
            functools.partial(_world, task),
        )
        for name, task in TASKS.items()
    ]


def _world(task: Task) -> World:
    space = enumerate_space(lattice(task))
    return World(
        collect=functools.partial(collect, task),
        reference=lambda objective, _: solve(space, objective, check=False).value,
        score=sampled_score(Reaching(task)),
    )


def lattice(task: Task) -> TabularMOMDP:
    """The same task on whole coordinates: every entry of a step is -1, 0 or 1."""
    goals = np.array(task.goals)
    size, moves = goals.shape[1], list(itertools.product((-1, 0, 1), repeat=goals.shape[1]))
    low, high = np.minimum(goals.min(axis=0), 0), np.maximum(goals.max(axis=0), 0)

    def step(place: tuple[int, ...], action: int) -> list[Outcome]:
        there = np.clip(np.add(place, moves[action]), low, high)
        chances = ((task.calm, tuple(int(x) for x in there)), (1 - task.calm, place))
        return [
            (chance, after, tuple(float(after == goal) for goal in task.goals), False)
            for chance, after in chances
            if chance > 0
        ]

    return table_of(step, len(moves), (0,) * size, task.horizon)


def collect(task: Task, episodes: int, seed: int) -> Episodes:
    """Episodes that visit the goals in a random order, leave at random times and take random actions."""
    env, rng = Reaching(task), np.random.default_rng(seed)
    goals, size = env.goals.shape
    order = rng.permuted(np.tile(np.arange(goals), (episodes, 1)), axis=1)
    leave = np.sort(rng.integers(0, task.horizon + 1, (episodes, goals - 1)), axis=1)
    rate = rng.choice(RATES, episodes)
    frames = np.zeros((episodes, task.horizon + 1, size), np.float32)
    actions = np.zeros((episodes, task.horizon, size), np.float32)
    rewards = np.zeros((episodes, task.horizon, goals))
    frames[:, 0] = env.reset(episodes, int(rng.integers(2**31)))
    for t in range(task.horizon):
        target = env.goals[order[np.arange(episodes), (t >= leave).sum(axis=1)]]
        heading = np.clip(target - frames[:, t], -1, 1) + NOISE * rng.standard_normal((episodes, size))
        random = rng.uniform(-1, 1, (episodes, size))
        chosen = np.where((rng.random(episodes) < rate)[:, None], random, heading)
        actions[:, t] = np.clip(chosen, -1, 1)
        frames[:, t + 1], rewards[:, t], _ = env.step(actions[:, t])
    return Episodes(
        observations=frames.reshape(-1, size),
        actions=actions.reshape(-1, size),
        rewards=rewards.reshape(-1, goals),
        lengths=np.full(episodes, task.horizon),
        terminated=np.zeros(episodes, dtype=bool),
        truncated=np.ones(episodes, dtype=bool),
        objectives=env.objectives,
    )
