"""Data that whole recorded episodes do not suit: parts to be joined, moves that slip, or both."""

from dataclasses import replace
from functools import partial
from typing import Any

from aetdice.config import TrainingConfig
from aetdice.envs import PointMaze
from aetdice.envs.point_maze.schedules import orders
from aetdice.evaluation import standard_objectives
from aetdice.studies import point_maze
from aetdice.studies.fair_taxi import MAIN, rows_of, taxi_table
from aetdice.studies.paper import REGIMES
from aetdice.studies.slippery import best_schedules
from aetdice.studies.study import Dataset, Effort, Study, Table, chosen_and_weighed, reference_of

SLIP = 0.1
TAXIS: dict[str, dict[str, Any]] = {
    "shifts": {"quality": "shifts"},
    "shifts-slip": {"quality": "shifts", "slip": SLIP},
    "mixed-slip": {"slip": SLIP},
}
_TAXI = TrainingConfig().adapted({"trainer.chunk": 2_000})
_MAZE = point_maze.QUICK.config.adapted({"trainer.holdout": None})
FULL = Effort((0, 1, 2), 2000, 2000, {}, _TAXI)
QUICK = Effort((0,), 2000, 2000, {}, _TAXI)
STEP = 30
"""Of the grid of switch times, before they are refined."""

ASKS = (
    "No recorded episode is good as a whole, but parts of several are; or moves slip; or both. Does AETDICE, "
    "with n chosen from the data, do better there than weighing whole episodes and than cloning?"
)


def study(quick: bool) -> Study:
    effort = QUICK if quick else FULL
    taxis = (taxi(name, effort) for name in TAXIS)
    mazes = (maze(name, effort, slip) for slip in (0.0, SLIP) for name in point_maze.MAZES)
    return Study("stitching", (*taxis, *mazes), asks=ASKS)


def taxi(name: str, effort: Effort) -> Table:
    """Fair-Taxi, with AETDICE, episode weighting and cloning."""
    table = f"taxi-{name}"
    populations = chosen_and_weighed(partial(rows_of, MAIN), effort.config, "cloning")
    return _prefixed(taxi_table(table, effort, MAIN, populations, **TAXIS[name]))


def maze(name: str, effort: Effort, slip: float) -> Table:
    """A maze logged in shifts; the networks are those of its quick study."""
    env, own = point_maze.MAZES[name](slip=slip), replace(effort, config=_MAZE, dataset=1500, episodes=1000)
    threshold = env.utility_threshold
    headings = dict(zip(REGIMES, standard_objectives(threshold).values(), strict=True))
    targets = orders(len(env.objectives), point_maze.LEGS)
    title = f"{name}-shifts{'-slip' if slip else ''}"
    table = point_maze.maze_table(title, env, headings, {}, own, targets, STEP, quality="shifts")
    rows = partial(point_maze.main_rows, threshold)
    table = replace(table, populations=chosen_and_weighed(rows, _MAZE, "cloning"))
    return _prefixed(_slippery(table, env) if slip else table)


def _slippery(table: Table, env: PointMaze) -> Table:
    """With the best schedules alone as references: what was recorded with slip may have been luck."""
    objectives = {name: each for name, each in table.columns.items() if name in point_maze.ALPHAS}

    def references(dataset: Dataset) -> dict[str, Any]:
        best = best_schedules(env, objectives)
        found = {
            point_maze.best_for(name): {"value": value, "scores": {name: value}}
            for name, value in best.items()
        }
        return {"data": reference_of(dataset.seen.returns, table.columns), **found}

    return replace(table, references=references, facts={**table.facts, "slip": env.slip})


def _prefixed(table: Table) -> Table:
    return replace(table, prefix=f"{table.name}-")
