"""Coverage: episodes that begin with reward already accrued, and more and more objectives."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from aetdice.envs import PointMaze
from aetdice.envs.point_maze.collection import collect_point_maze
from aetdice.evaluation.rollout import Situation, sample_returns
from aetdice.learning.checkpointing import Report
from aetdice.learning.run import Run
from aetdice.learning.training import train
from aetdice.networks import PolicyNetwork
from aetdice.objectives import Objective, bsr, in_float64
from aetdice.studies.members import SEED
from aetdice.studies.parts import Part
from aetdice.studies.pointmaze.measure import measure
from aetdice.studies.pointmaze.plan import ARMS, Plan
from aetdice.studies.pointmaze.schedules import best_mixture, described, drive_all, orders, search, tours

ENDOWED = "endowed"
AMOUNTS = (20.0, 60.0, 150.0)
"""Reward that one goal has brought before the episode begins, in units of its scale."""
GOALS = "goals-"
ARM_DISTANCE = 0.3
ARM_STEP = 30
TRAINED = {"ESR": 0.0, "SER": 1.0}


def parts_of(plan: Plan) -> list[Part]:
    return [_endowed(plan), *(_goals(plan, arms) for arms in plan.arms)]


def _train(plan: Plan, maze: PointMaze, objectives: Sequence[Objective], folder: Path, report: Report) -> Run:
    return train(
        collect_point_maze(maze, plan.dataset),
        objectives,
        horizon=maze.horizon,
        beta=plan.coverage_beta,
        seed=plan.coverage_seeds,
        config=plan.config,
        out=folder,
        report=report,
    )


def _facts(plan: Plan, **more: Any) -> dict[str, Any]:
    return {
        "dataset": plan.dataset,
        "beta": plan.coverage_beta,
        "seeds": plan.coverage_seeds,
        "episodes": plan.episodes,
        "config": asdict(plan.config),
        **more,
    }


def _endowed(plan: Plan) -> Part:
    """A policy trained for ESR on episodes that begin with nothing, begun with something."""
    maze = plan.environment()
    objective = bsr(0.0, threshold=maze.utility_threshold)

    def work(folder: Path, report: Report) -> dict[str, Any]:
        run = _train(plan, maze, [objective], folder, report)
        schedules = drive_all(maze, orders(len(maze.objectives), 3), 2 * plan.step)
        cases = []
        for endowment in endowments(maze):
            best = best_mixture(objective, schedules.returns + endowment)
            seeds = [
                _begun(member.policy.policy, member.twin.policy, maze, plan.episodes, endowment, objective)
                for member in run.members
            ]
            cases.append(
                {
                    "endowment": endowment.tolist(),
                    "best": best.value,
                    "best_gains": (best.probabilities @ schedules.returns[best.rows]).tolist(),
                    "schedule": described(schedules, best, maze.objectives),
                    "seeds": seeds,
                }
            )
        return {"objectives": list(maze.objectives), "cases": cases}

    return Part(ENDOWED, _facts(plan, maze=plan.maze, amounts=AMOUNTS, step=2 * plan.step), work)


def endowments(maze: PointMaze) -> list[Float[np.ndarray, " m"]]:
    """Nothing, then each amount for each goal."""
    each = np.diag(np.asarray(maze.scales))
    return [np.zeros(len(each)), *(amount * goal for amount in AMOUNTS for goal in each)]


def _begun(
    policy: PolicyNetwork,
    twin: PolicyNetwork,
    maze: PointMaze,
    episodes: int,
    endowment: Any,
    objective: Objective,
) -> dict[str, Any]:
    """J of what has accrued in the end: of the policy, of its twin, and had the policy not been told."""
    start = maze.reset(jax.random.key(SEED))
    begin = Situation(start, jnp.asarray(endowment, jnp.float32), jnp.zeros((), jnp.int32))
    told, cloned = (sample_returns(p, maze, episodes, SEED, begin) for p in (policy, twin))
    untold = sample_returns(policy, maze, episodes, SEED) + endowment
    score = in_float64(objective)
    return {
        "score": float(score(np.asarray(told, float))),
        "untold": float(score(np.asarray(untold, float))),
        "twin": float(score(np.asarray(cloned, float))),
        "gains": (told.mean(axis=0) - endowment).tolist(),
    }


def _goals(plan: Plan, arms: int) -> Part:
    """The same training on a star of so many arms, for ESR and for SER."""

    def work(folder: Path, report: Report) -> dict[str, Any]:
        maze = PointMaze(ARMS[arms], distance=ARM_DISTANCE)
        objectives = {name: bsr(alpha, threshold=maze.utility_threshold) for name, alpha in TRAINED.items()}
        run = _train(plan, maze, list(objectives.values()), folder, report)
        known, best = search(maze, objectives, tours(arms), ARM_STEP)
        return {
            **measure(run, maze, plan.episodes, list(objectives)),
            "best": {name: mixture.value for name, mixture in best.items()},
            "schedules": {name: described(known, best[name], maze.objectives) for name in best},
        }

    return Part(f"{GOALS}{arms}", _facts(plan, layout=ARMS[arms], step=ARM_STEP), work)
