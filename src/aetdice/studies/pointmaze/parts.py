"""The parts of the MO-PointMaze study: one per population, each saved when done."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from aetdice.envs.point_maze.collection import collect_point_maze
from aetdice.evaluation.rollout import standard_objectives
from aetdice.learning.checkpointing import Report
from aetdice.learning.training import train
from aetdice.objectives import Objective, bsr, esr, in_float64, lsr, ser
from aetdice.studies.members import rounded
from aetdice.studies.parts import Part
from aetdice.studies.pointmaze import coverage
from aetdice.studies.pointmaze.measure import measure
from aetdice.studies.pointmaze.plan import ALPHAS, WEIGHTS, Plan
from aetdice.studies.pointmaze.schedules import described, orders, search

LEGS = 3
REFERENCE = "reference"
"""The part that has the data's returns and the best schedules."""


def parts_of(plan: Plan) -> list[Part]:
    """The reference, AETDICE, the other methods, then the coverage studies."""
    threshold = plan.environment().utility_threshold
    linear = {name: lsr(weights) for name, weights in WEIGHTS[plan.maze].items()}
    own = {f"AETDICE {name}": bsr(alpha, threshold=threshold) for name, alpha in ALPHAS.items()}
    baseline = replace(
        plan, config=replace(plan.config, value_steps=plan.baseline_steps, batch=plan.baseline_batch)
    )
    # In short trainings of the discounted flow the last layer matters: docs/baselines.md.
    polished = replace(baseline, config=replace(baseline.config, polish="layer"))
    iql = {"expectile": plan.expectiles, "temperature": plan.temperatures}
    populations = [
        _population("aetdice", plan, "aetdice", own, {"beta": plan.betas}),
        _population(
            "aetdice-linear", baseline, "aetdice", _named("AETDICE", linear), {"beta": plan.linear_betas}
        ),
        _population(
            "optidice", polished, "optidice", _named("OptiDICE", linear), {"beta": plan.optidice_betas}
        ),
        _population("fairdice", polished, "fairdice", {"FairDICE SER": ser()}, {"beta": plan.fairdice_betas}),
        _population("esr-iql", baseline, "esr-iql", {"ESR-IQL": esr(threshold=threshold)}, iql),
    ]
    return [_reference(plan), *populations, *coverage.parts_of(baseline)]


def _named(method: str, objectives: Mapping[str, Objective]) -> dict[str, Objective]:
    return {f"{method} {name}": objective for name, objective in objectives.items()}


def _population(
    name: str, plan: Plan, algorithm: str, rows: Mapping[str, Objective], grid: Mapping[str, Sequence[float]]
) -> Part:
    facts = {
        "maze": plan.maze,
        "dataset": plan.dataset,
        "algorithm": algorithm,
        "rows": {row: objective.name for row, objective in rows.items()},
        "grid": dict(grid),
        "seeds": plan.seeds,
        "episodes": plan.episodes,
        "config": asdict(plan.config),
    }

    def work(folder: Path, report: Report) -> dict[str, Any]:
        maze = plan.environment()
        run = train(
            collect_point_maze(maze, plan.dataset),
            list(rows.values()),
            algorithm=algorithm,
            horizon=maze.horizon,
            beta=grid.get("beta"),
            expectile=grid.get("expectile"),
            temperature=grid.get("temperature"),
            seed=plan.seeds,
            config=plan.config,
            out=folder,
            report=report,
        )
        return measure(run, maze, plan.episodes, list(rows))

    return Part(name, facts, work)


def _reference(plan: Plan) -> Part:
    """What the data returned, and the best mixture of schedules for every objective of the study."""
    maze = plan.environment()
    columns = standard_objectives(None, maze.utility_threshold)
    objectives = {**columns, **{name: lsr(weights) for name, weights in WEIGHTS[plan.maze].items()}}
    goals = len(maze.objectives)
    facts = {"maze": plan.maze, "dataset": plan.dataset, "step": plan.step, "legs": LEGS}

    def work(folder: Path, report: Report) -> dict[str, Any]:
        del folder, report
        known, best = search(maze, objectives, orders(goals, LEGS), plan.step)
        returns = collect_point_maze(maze, plan.dataset).returns
        return {
            "schedules": {
                name: {
                    "objective": objectives[name].name,
                    "value": mixture.value,
                    "scores": {
                        column: _score(columns[column], known.returns[mixture.rows], mixture.probabilities)
                        for column in columns
                    },
                    "mixture": described(known, mixture, maze.objectives),
                }
                for name, mixture in best.items()
            },
            "driven": len(known.returns),
            "objectives": list(maze.objectives),
            "data": {
                "returns": rounded(returns.tolist()),
                "scores": {column: _score(columns[column], returns) for column in columns},
            },
        }

    return Part(REFERENCE, facts, work)


def _score(objective: Objective, *episodes: Any) -> float:
    return float(in_float64(objective)(*episodes))
