"""The best that the maze's heuristics can do: schedules of goals, and mixtures of schedules.

A schedule heads for one goal after another and switches at fixed times. A policy may draw its
schedule at random, so what counts for J = G(E[F(R)]) is the best mixture, max_p G(Σ_i p_i F(R_i)):
concave in p, and solved exactly over the schedules that were driven.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float, Int

from aetdice.envs import PointMaze
from aetdice.envs.point_maze.heuristics import schedule_returns
from aetdice.exact.simplex import maximise_on_simplex
from aetdice.objectives import Objective, in_float64, second_order

TOGETHER = 2048
"""Schedules that are driven at once."""
FINER = 3
"""How much finer the grid becomes around the best schedules, each time."""
KEPT = 6
"""Schedules whose surroundings are searched, for each objective, beside those of the best mixture."""
LEAST = 1e-4
"""Schedules that are drawn less often than this are left out of a mixture."""
MOST_ROUNDS = 200


class Schedules(NamedTuple):
    """Goals in the order they are headed for, when to switch, and what that returns."""

    targets: Int[np.ndarray, "n legs"]
    switch_times: Int[np.ndarray, "n switches"]
    returns: Float[np.ndarray, "n m"]

    def joined(self, other: "Schedules") -> "Schedules":
        return Schedules(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))


class Mixture(NamedTuple):
    """Rows of schedules, how often each is drawn, and the J that results."""

    value: float
    rows: Int[np.ndarray, " k"]
    probabilities: Float[np.ndarray, " k"]
    promising: Int[np.ndarray, " kept"]
    """Rows that would gain most, or lose least, if they were drawn a little."""


def orders(goals: int, legs: int) -> Int[np.ndarray, "n legs"]:
    """Sequences of goals in which none follows itself."""
    return np.array(
        [
            order
            for order in itertools.product(range(goals), repeat=legs)
            if all(a != b for a, b in itertools.pairwise(order))
        ]
    )


def tours(goals: int) -> Int[np.ndarray, "n goals"]:
    """Sequences that visit every goal once."""
    return np.array(list(itertools.permutations(range(goals))))


def drive_all(maze: PointMaze, targets: Int[np.ndarray, "n legs"], step: int) -> Schedules:
    """Every sequence of goals with all switch times on a grid; short sequences are contained."""
    switches = targets.shape[1] - 1
    grid = range(0, maze.horizon + 1, step)
    times = np.array(list(itertools.combinations_with_replacement(grid, switches))).reshape(-1, switches)
    return _drive(maze, np.repeat(targets, len(times), axis=0), np.tile(times, (len(targets), 1)))


def _drive(
    maze: PointMaze, targets: Int[np.ndarray, "n legs"], times: Int[np.ndarray, "n switches"]
) -> Schedules:
    """In batches whose sizes are powers of two, so that there are few programs to compile."""
    count = len(targets)
    size = min(TOGETHER, 1 << (count - 1).bit_length())
    rows = (np.arange(-(-count // size) * size) % count).reshape(-1, size)
    parts = [schedule_returns(maze, targets[part], times[part]) for part in rows]
    return Schedules(targets, times, np.concatenate(parts)[:count])


def search(
    maze: PointMaze, objectives: Mapping[str, Objective], targets: Int[np.ndarray, "n legs"], step: int
) -> tuple[Schedules, dict[str, Mixture]]:
    """The best mixture for each objective: on a grid, then with the times of its schedules refined."""
    known = drive_all(maze, targets, step)
    while True:
        best = {name: best_mixture(objective, known.returns) for name, objective in objectives.items()}
        if step == 1:
            return known, best
        rows = [row for mixture in best.values() for row in (*mixture.rows, *mixture.promising)]
        used, finer = np.unique(rows), max(1, step // FINER)
        near = _neighbours(known.targets[used], known.switch_times[used], step, finer, maze.horizon)
        known, step = known.joined(_drive(maze, *near)), finer


def _neighbours(
    targets: Int[np.ndarray, "n legs"],
    times: Int[np.ndarray, "n switches"],
    step: int,
    finer: int,
    horizon: int,
) -> tuple[Int[np.ndarray, "k legs"], Int[np.ndarray, "k switches"]]:
    """The schedules with every switch time moved by up to a step, in every combination."""
    reach = step // finer * finer
    moves = range(-reach, reach + 1, finer)
    offsets = np.array(list(itertools.product(moves, repeat=times.shape[1])), int).reshape(-1, times.shape[1])
    moved = np.sort(np.clip(times[:, None] + offsets[None], 0, horizon), axis=2)
    both = np.hstack([np.repeat(targets, len(offsets), axis=0), moved.reshape(-1, times.shape[1])])
    return tuple(np.split(np.unique(both, axis=0), [targets.shape[1]], axis=1))  # type: ignore[return-value]


def best_mixture(objective: Objective, returns: Float[np.ndarray, "n m"]) -> Mixture:
    """argmax_p G(Σ p_i F(R_i)): Frank-Wolfe that re-optimises over all rows it has found so far."""
    utilities = np.asarray(in_float64(eqx.filter_vmap(objective.utility))(returns))
    aggregate = _smooth(objective.aggregation)
    rows = [int(np.argmax(utilities @ aggregate(utilities.mean(axis=0))[1]))]
    weights = np.ones(1)
    for _ in range(MOST_ROUNDS):
        value, slope, _ = aggregate(weights @ utilities[rows])
        gains = (utilities - weights @ utilities[rows]) @ slope
        best = int(np.argmax(gains))
        if best in rows or gains[best] <= 1e-9 * (1 + abs(value)):
            break
        rows.append(best)
        weights = maximise_on_simplex(aggregate, utilities[rows], np.append(weights, 0.0))
    used = weights > LEAST
    weights = np.where(used, weights, 0) / weights[used].sum()
    value, slope, _ = aggregate(weights @ utilities[rows])
    return Mixture(value, np.array(rows)[used], weights[used], np.argsort(-(utilities @ slope))[:KEPT])


def _smooth(aggregation: Any) -> Callable[[Any], tuple[float, Any, Any]]:
    def function(k: Float[np.ndarray, " n"]) -> tuple[float, Any, Any]:
        value, gradient, hessian = in_float64(second_order)(aggregation, k)
        return float(value), gradient, hessian

    return function


def described(schedules: Schedules, mixture: Mixture, names: Sequence[str]) -> list[dict[str, Any]]:
    """A mixture as results keep it: the schedules it draws, likeliest first."""
    listed = []
    for i in np.argsort(-mixture.probabilities):
        row = mixture.rows[i]
        listed.append(
            {
                "probability": float(mixture.probabilities[i]),
                "goals": [names[target] for target in schedules.targets[row]],
                "switch_times": schedules.switch_times[row].tolist(),
                "returns": schedules.returns[row].tolist(),
            }
        )
    return listed
