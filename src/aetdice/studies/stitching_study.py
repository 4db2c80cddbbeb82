"""Data that whole recorded episodes do not suit: parts to be joined, moves that slip, or both."""

from dataclasses import replace
from functools import partial
from typing import Any

from aetdice.config import TrainingConfig
from aetdice.envs.point_maze.schedules import orders
from aetdice.evaluation import standard_objectives
from aetdice.studies import point_maze
from aetdice.studies.fair_taxi import MAIN, rows_of, taxi_table
from aetdice.studies.paper import REGIMES
from aetdice.studies.study import Effort, Study, Table, chosen_and_weighed

SLIP = 0.1
TAXIS: dict[str, dict[str, Any]] = {
    "shifts": {"quality": "shifts"},
    "shifts-slip": {"quality": "shifts", "slip": SLIP},
    "mixed-slip": {"slip": SLIP},
}
_TAXI = TrainingConfig().adapted({"trainer.chunk": 2_000})
_MAZE = point_maze.QUICK.config.adapted({"trainer.holdout": None})
FULL = Effort((0, 1, 2), 2000, 2000, {}, _TAXI, baseline=_TAXI)
QUICK = Effort((0,), 2000, 2000, {}, _TAXI, baseline=_TAXI)
STEP = 30
"""Of the grid of switch times, before they are refined."""


def study(quick: bool) -> Study:
    effort = QUICK if quick else FULL
    taxis = (taxi(name, effort) for name in TAXIS)
    mazes = (maze(name, effort) for name in point_maze.MAZES)
    return Study("stitching", (*taxis, *mazes))


def taxi(name: str, effort: Effort) -> Table:
    """Fair-Taxi, with AETDICE, episode weighting and cloning."""
    table = f"taxi-{name}"
    populations = chosen_and_weighed(partial(rows_of, MAIN), effort.config, "cloning")
    return _prefixed(taxi_table(table, effort, MAIN, populations, **TAXIS[name]))


def maze(name: str, effort: Effort) -> Table:
    """A maze logged in shifts; the networks are those of its quick study."""
    env, own = point_maze.MAZES[name](), replace(effort, config=_MAZE, dataset=1500, episodes=1000)
    threshold = env.utility_threshold
    headings = dict(zip(REGIMES, standard_objectives(threshold).values(), strict=True))
    targets = orders(len(env.objectives), point_maze.LEGS)
    table = point_maze.maze_table(f"{name}-shifts", env, headings, {}, own, targets, STEP, quality="shifts")
    rows = partial(point_maze.main_rows, threshold)
    return _prefixed(replace(table, populations=chosen_and_weighed(rows, _MAZE, "cloning")))


def _prefixed(table: Table) -> Table:
    return replace(table, prefix=f"{table.name}-")
