"""MO-PointMaze as in the paper: every row of its table and the β ablation, beside the best schedules."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Int

from aetdice.config import TrainingConfig
from aetdice.envs import PointMaze, point_maze_2obj, point_maze_3obj
from aetdice.envs.point_maze import collect_point_maze
from aetdice.envs.point_maze.schedules import Schedules, drive_all, drive_schedules, nearby_schedules, orders
from aetdice.evaluation import standard_objectives
from aetdice.exact.mixtures import Mixture, best_mixture
from aetdice.objectives import Objective, bsr, esr, in_float64, lsr, ser
from aetdice.report.sheets import Cell, Sheet, line
from aetdice.studies import study as framework
from aetdice.studies.maze_figures import draw_maze
from aetdice.studies.paper import POINT_MAZE, REGIMES
from aetdice.studies.score_tables import number
from aetdice.studies.study import Dataset, Effort, Population, Row, Summary, Table

MAZES = {"pointmaze-2obj": point_maze_2obj, "pointmaze-3obj": point_maze_3obj}
ALPHAS = {"ESR": 0.0, "BSR 0.5": 0.5, "SER": 1.0}
"""The rows of AETDICE as members of one family."""
WEIGHTS: dict[str, dict[str, tuple[float, ...]]] = {
    "pointmaze-2obj": {"[0.5, 0.5]": (0.5, 0.5), "[1, 0]": (1.0, 0.0), "[0.75, 0.25]": (0.75, 0.25)},
    "pointmaze-3obj": {
        "[1/3, 1/3, 1/3]": (1 / 3, 1 / 3, 1 / 3),
        "[1, 0, 0]": (1.0, 0.0, 0.0),
        "[0.75, 0.25, 0]": (0.75, 0.25, 0.0),
    },
}
LEGS = 3
FINER = 3
"""How much finer the grid of switch times becomes around the best schedules, each time."""
_FEATURES = {"network.observation_fourier": 3, "network.fourier": 3, "trainer.holdout": 0.1}
_SMALL = framework.with_value_stage(
    TrainingConfig().adapted(_FEATURES | {"extraction.dropout": 0.1, "trainer.chunk": 1_000}), 12_000, 256
)
_POLICY = {"extraction.batch": 512, "extraction.steps": 24_000, "extraction.dropout": 0.2}
_LARGE = framework.with_value_stage(
    TrainingConfig().adapted(
        _FEATURES
        | {"network.hidden": (256, 256), "network.value_fourier": 6, "trainer.chunk": 4_000}
        | _POLICY
    ),
    60_000,
    1024,
)
FULL = Effort(
    seeds=(0, 1, 2),
    episodes=1000,
    dataset=1500,
    grids={
        "aetdice": {"beta": (1e-2, 3e-3, 1e-3, 5e-4, 2e-4, 1e-4, 5e-5, 2e-5, 1e-5)},
        # Values are hundreds.
        "aetdice-linear": {"beta": (10.0, 3.0, 1.0, 3e-1, 1e-1, 3e-2, 1e-2, 3e-3, 1e-3)},
        # A discounted flow's weights sum to one: the unit of their papers.
        "optidice": {"beta": (300.0, 100.0, 30.0, 10.0, 3.0, 1.0, 3e-1, 1e-1, 3e-2)},
        "fairdice": {"beta": (30.0, 10.0, 3.0, 1.0, 3e-1, 1e-1, 3e-2, 1e-2, 3e-3)},
        # The first are taken.
        "esr-iql": {"expectile": (0.85, 0.7, 0.8, 0.9, 0.95), "temperature": (14.0, 3.0, 60.0)},
        "coverage": {"beta": (2e-4,)},
    },
    config=_LARGE,
)
QUICK = Effort(
    seeds=(0,),
    episodes=500,
    dataset=1500,
    grids={
        "aetdice": {"beta": (3e-3, 1e-3)},
        "aetdice-linear": {"beta": (1e-1, 3e-2)},
        "optidice": {"beta": (10.0, 3.0)},
        "fairdice": {"beta": (1.0, 3e-1)},
        "esr-iql": {"expectile": (0.85, 0.8), "temperature": (14.0,)},
        "coverage": {"beta": (1e-3,)},
    },
    config=_SMALL,
)
FULL_3 = replace(
    FULL,
    grids={**FULL.grids, "aetdice": {"beta": (2e-3, 1e-3, 5e-4, 2e-4, 1e-4, 5e-5, 2e-5)}},
    config=framework.with_value_stage(_LARGE, 120_000, 2048),
)
"""With three goals values take four times the samples, of every method; the middle of AETDICE's grid does."""


def table_of(name: str, effort: Effort, step: int) -> Table:
    """A maze's table; `step` is that of the grid of switch times, before they are refined."""
    maze = MAZES[name]()
    headings = dict(zip(REGIMES, standard_objectives(maze.utility_threshold).values(), strict=True))
    linear = {weights: lsr(given) for weights, given in WEIGHTS[name].items()}
    table = maze_table(name, maze, headings, linear, effort, orders(len(maze.objectives), LEGS), step)
    return replace(
        table,
        populations=populations(maze.utility_threshold, linear, effort),
        paper=POINT_MAZE[name],
        sheets=lambda summary: [schedule_sheet(summary)] if summary["references"] else [],
        figures=draw_maze,
    )


def populations(threshold: float, linear: Mapping[str, Objective], effort: Effort) -> tuple[Population, ...]:
    """AETDICE, then the other methods."""
    family = {name: bsr(alpha, threshold=threshold) for name, alpha in ALPHAS.items()}

    def rows(method: str, objectives: Mapping[str, Objective], column: str | None = None) -> tuple[Row, ...]:
        return tuple(
            Row(f"{method}{name}", objective, column or name, best_for(name))
            for name, objective in objectives.items()
        )

    def baseline(name: str, algorithm: str, rows: tuple[Row, ...], **more: Any) -> Population:
        # In short trainings of the discounted flow the last layer matters: docs/algorithms/fairdice.md.
        refit = {"dual.refit": "layer"} if algorithm in ("optidice", "fairdice") else {}
        return Population(name, algorithm, rows, effort.grids[name], effort.config.adapted(refit), **more)

    iql = Row("ESR-IQL", esr(threshold=threshold), "ESR", best_for("ESR"))
    state_only = "cloning, state only"
    return (
        Population(
            "aetdice", "aetdice", rows("AETDICE ", family), effort.grids["aetdice"], effort.config, "cloning"
        ),
        baseline("aetdice-linear", "aetdice", rows("AETDICE ", linear, "LSR")),
        baseline("optidice", "optidice", rows("OptiDICE ", linear, "LSR"), cloning_row=state_only),
        baseline("fairdice", "fairdice", rows("FairDICE ", {"SER": ser()})),
        baseline("esr-iql", "esr-iql", (iql,)),
        *framework.chosen_and_weighed(partial(main_rows, threshold), effort.config),
    )


def main_rows(threshold: float, ending: str) -> tuple[Row, ...]:
    """A row for ESR, BSR(0.5) and SER each."""
    return tuple(
        Row(f"AETDICE {name}{ending}", bsr(alpha, threshold=threshold), name, best_for(name))
        for name, alpha in ALPHAS.items()
    )


def maze_table(
    name: str,
    maze: PointMaze,
    headings: Mapping[str, Objective],
    more: Mapping[str, Objective],
    effort: Effort,
    targets: Int[np.ndarray, "n legs"],
    step: int,
    quality: str = "mixed",
) -> Table:
    """Any maze: its data of a quality, and the best known for the columns and for `more` objectives."""

    def references(dataset: Dataset) -> dict[str, Any]:
        known, best = search(maze, {**headings, **more}, targets, step)
        returns = dataset.seen.returns
        found = {
            "data": framework.reference_of(returns, headings, samples={"returns": framework.rounded(returns)})
        }
        for name, mixture in best.items():
            recorded = best_mixture({**headings, **more}[name], returns)
            better = max(recorded, mixture, key=lambda each: each.value)
            source = returns if better is recorded else known.returns
            mixed = (source[better.rows], better.probabilities)
            found[best_for(name)] = {
                "value": better.value,
                "recorded": recorded.value,
                "schedules_value": mixture.value,
                "scores": {h: float(in_float64(column)(*mixed)) for h, column in headings.items()},
                "schedules": described(known, mixture, maze.objectives),
            }
        return found

    return Table(
        name=name,
        title=name,
        horizon=maze.horizon,
        effort=effort,
        columns=headings,
        populations=(),
        facts={
            "maze": name,
            "step": step,
            "legs": targets.shape[1],
            "quality": quality,
            "environment": framework.facts_of(maze),
        },
        dataset=lambda _: Dataset(collect_point_maze(maze, effort.dataset, framework.DATA_SEED, quality)),
        play=framework.play_in(maze),
        references=references,
        interval=True,
    )


def best_for(objective: str) -> str:
    """The reference of an objective: the better of the schedules and of the recorded episodes, mixed."""
    return f"best known for {objective}"


def search(
    maze: PointMaze, objectives: Mapping[str, Objective], targets: Int[np.ndarray, "n legs"], step: int
) -> tuple[Schedules, dict[str, Mixture]]:
    """The best mixture of schedules for each objective: on a grid, then with refined switch times.

    A policy may draw its schedule at random, so what counts for J = G(E[F(R)]) is the best mixture.
    """
    known = drive_all(maze, targets, step)
    while True:
        best = {name: best_mixture(objective, known.returns) for name, objective in objectives.items()}
        if step == 1:
            return known, best
        rows = [row for mixture in best.values() for row in (*mixture.rows, *mixture.promising)]
        used, finer = np.unique(rows), max(1, step // FINER)
        near = nearby_schedules(known.targets[used], known.switch_times[used], step, finer, maze.horizon)
        known, step = known.joined(drive_schedules(maze, *near)), finer


def described(schedules: Schedules, mixture: Mixture, names: Sequence[str]) -> list[dict[str, Any]]:
    """A mixture as results keep it: the schedules it draws, likeliest first."""
    return [
        {
            "probability": float(mixture.probabilities[i]),
            "goals": [names[target] for target in schedules.targets[mixture.rows[i]]],
            "switch_times": schedules.switch_times[mixture.rows[i]].tolist(),
            "returns": schedules.returns[mixture.rows[i]].tolist(),
        }
        for i in np.argsort(-mixture.probabilities)
    ]


def schedule_sheet(summary: Summary) -> Sheet:
    """The best mixture of schedules for every objective."""
    shown = []
    for name, found in summary["references"].items():
        lines = [
            f"{part['probability']:.0%} {route(part, summary['horizon'])} → {vector(part['returns'])}"
            for part in found.get("schedules", [])
        ]
        if lines:
            value = found["schedules_value"]
            shown.append(line(name, Cell(f"{value:.3f}", value), "\n".join(lines)))
    title = f"{summary['title']}: the best schedules, or mixtures of them"
    return Sheet(title, ("", "value", "schedules"), shown, wordy=("schedules",))


def route(part: Mapping[str, Any], horizon: int) -> str:
    """A schedule in words, legs of no length left out."""
    words = [part["goals"][0]]
    for goal, time in zip(part["goals"][1:], part["switch_times"], strict=True):
        if time == 0:
            words = [goal]
        elif time < horizon:
            words.append(f"at {time} {goal}")
    return ", ".join(words)


def vector(values: Sequence[float]) -> str:
    return f"({', '.join(number(value) for value in values)})"
