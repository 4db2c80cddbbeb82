"""Mazes with random maps; the reference is the better of the best schedules and of the recorded episodes."""

import functools
from typing import NamedTuple

import numpy as np

from aetdice.data import Episodes
from aetdice.envs import PointMaze
from aetdice.envs.point_maze import collect_point_maze
from aetdice.envs.point_maze.layout import FREE, GOALS, START, WALL, steps_from
from aetdice.envs.point_maze.schedules import orders
from aetdice.exact.mixtures import best_mixture
from aetdice.objectives import Objective
from aetdice.studies.point_maze import LEGS, search
from aetdice.studies.slippery import best_schedules
from aetdice.studies.strangers.problem import Problem, World, fair_objectives, seed_of
from aetdice.studies.strangers.sampling import sampled_score

FAMILY = "maze"
EPISODES = 1_000
STEP = 30
"""Of the grid of switch times, before they are refined."""
WALLS = 0.3
"""Share of the inner cells."""
NEAREST, FARTHEST = 2, 6
"""Cells from the start to a goal, and from goal to goal."""


class Maze(NamedTuple):
    """What is not drawn of a maze."""

    rows: int
    columns: int
    goals: int
    horizon: int = 200
    distance: float = 0.4
    slip: float = 0.0
    quality: str = "mixed"


MAZES = {
    "maze-0": Maze(3, 4, 2),
    "maze-1": Maze(4, 4, 2),
    "maze-3": Maze(4, 4, 3, horizon=250),
    "maze-4": Maze(3, 4, 2, slip=0.1),
    "maze-5": Maze(3, 3, 2, quality="shifts"),
    "maze-6": Maze(4, 4, 2, quality="shifts"),
    "maze-8": Maze(3, 4, 2, quality="shifts"),
    "maze-12": Maze(3, 4, 3, horizon=250, quality="shifts"),
    "maze-13": Maze(4, 3, 2),
    "maze-14": Maze(3, 4, 2, slip=0.15, quality="shifts"),
    "maze-16": Maze(4, 3, 2, quality="shifts"),
    "maze-17": Maze(3, 4, 3, horizon=250),
}
FEW = {"maze-13": 100}
"""Episodes of problems with little data."""


def problems() -> list[Problem]:
    return [_problem(name, maze) for name, maze in MAZES.items()]


def _problem(name: str, maze: Maze) -> Problem:
    layout = draw_map(maze.rows, maze.columns, maze.goals, seed_of(name))
    facts = {**maze._asdict(), "layout": layout}
    env = PointMaze(layout, maze.distance, horizon=maze.horizon, slip=maze.slip)
    objectives = fair_objectives(env.utility_threshold)
    world = functools.partial(maze_world, env, objectives, maze.quality)
    return Problem(name, FAMILY, objectives, FEW.get(name, EPISODES), facts, world)


def maze_world(env: PointMaze, objectives: dict[str, Objective], quality: str) -> World:
    """A maze and its data of a quality, beside what is best known for the objectives."""

    @functools.cache
    def schedules() -> dict[str, float]:
        named = {each.name: each for each in objectives.values()}
        targets = orders(len(env.objectives), LEGS)
        if env.slip:
            return best_schedules(env, named, targets)
        return {name: mixture.value for name, mixture in search(env, named, targets, STEP)[1].items()}

    def reference(objective: Objective, dataset: Episodes) -> float:
        best = schedules()[objective.name]
        # What was recorded with slip may have been luck.
        return best if env.slip else max(best, best_mixture(objective, dataset.returns).value)

    return World(
        collect=functools.partial(collect_point_maze, env, quality=quality),
        reference=reference,
        score=sampled_score(env),
    )


def draw_map(rows: int, columns: int, goals: int, seed: int) -> str:
    """The first map from a seed in which start and goals are neither too near to each other nor too far."""
    rng = np.random.default_rng(seed)
    while True:
        walls = np.pad(rng.random((rows, columns)) < WALLS, 1, constant_values=True)
        free = [(int(r), int(c)) for r, c in np.argwhere(~walls)]
        if len(free) <= goals:
            continue
        places = [free[i] for i in rng.permutation(len(free))[: goals + 1]]
        apart = [steps_from(walls, one)[other] for one in places for other in places if other != one]
        if min(apart) >= NEAREST and max(apart) <= FARTHEST:
            marks = np.where(walls, WALL, FREE)
            for place, mark in zip(places, START + GOALS, strict=False):
                marks[place] = mark
            return " / ".join("".join(line) for line in marks)
