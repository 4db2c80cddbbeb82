"""Schedules: the heuristics head for one goal after another and switch at fixed times."""

import itertools
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from aetdice.envs.point_maze.heuristics import schedule_returns
from aetdice.envs.point_maze.maze import PointMaze

TOGETHER = 2048
"""Schedules that are driven at once."""


class Schedules(NamedTuple):
    """Goals in the order they are headed for, when to switch, and what that returns."""

    targets: Int[np.ndarray, "n legs"]
    switch_times: Int[np.ndarray, "n switches"]
    returns: Float[np.ndarray, "n m"]

    def joined(self, other: "Schedules") -> "Schedules":
        return Schedules(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))


def orders(goals: int, legs: int) -> Int[np.ndarray, "n legs"]:
    """Sequences of goals in which none follows itself."""
    sequences = itertools.product(range(goals), repeat=legs)
    return np.array([order for order in sequences if all(a != b for a, b in itertools.pairwise(order))])


def tours(goals: int) -> Int[np.ndarray, "n goals"]:
    """Sequences that visit every goal once."""
    return np.array(list(itertools.permutations(range(goals))))


def drive_all(maze: PointMaze, targets: Int[np.ndarray, "n legs"], step: int) -> Schedules:
    """Every sequence of goals with all switch times on a grid; short sequences are contained."""
    return drive_schedules(maze, *schedule_grid(targets, step, maze.horizon))


def schedule_grid(
    targets: Int[np.ndarray, "n legs"], step: int, horizon: int
) -> tuple[Int[np.ndarray, "k legs"], Int[np.ndarray, "k switches"]]:
    """The schedules with every sequence of goals and all switch times that are multiples of a step."""
    switches = targets.shape[1] - 1
    grid = range(0, horizon + 1, step)
    found = list(itertools.combinations_with_replacement(grid, switches))
    times = np.array(found, int).reshape(len(found), switches)
    return np.repeat(targets, len(times), axis=0), np.tile(times, (len(targets), 1))


def drive_schedules(
    maze: PointMaze, targets: Int[np.ndarray, "n legs"], times: Int[np.ndarray, "n switches"]
) -> Schedules:
    """What schedules return."""
    count = len(targets)
    # Powers of two, so that there are few programs to compile.
    size = min(TOGETHER, 1 << (count - 1).bit_length())
    rows = (np.arange(-(-count // size) * size) % count).reshape(-1, size)
    parts = [schedule_returns(maze, targets[part], times[part]) for part in rows]
    return Schedules(targets, times, np.concatenate(parts)[:count])


def nearby_schedules(
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
    unique = np.unique(both, axis=0)
    return unique[:, : targets.shape[1]], unique[:, targets.shape[1] :]
