"""What the members of a population attain in the maze, as results keep it."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from aetdice.envs import PointMaze
from aetdice.evaluation import evaluate_returns, sample_returns, standard_objectives
from aetdice.objectives import Objective
from aetdice.reproduce import members
from aetdice.reproduce.members import SEED, Stage, rounded
from aetdice.runs import Run

Returns = Float[np.ndarray, "episodes m"]

LEVELS = np.linspace(0, 1, 51)
SHOWN = 150
"""Episodes of each seed that are kept for the scatter."""


def measure(run: Run, maze: PointMaze, episodes: int, names: Sequence[str]) -> dict[str, Any]:
    """Every setting of every row (named, in the order of the run's objectives), and the twins."""
    stage = Stage[Returns](
        play=lambda policy: sample_returns(policy, maze, episodes, SEED),
        record=lambda returns, objective: scores_of(returns, maze, objective),
        value=lambda returns, objective: float(objective(jnp.asarray(returns))),
        bulky=("returns", "quantiles"),
    )
    return members.measure(run, names, stage)


def scores_of(returns: Returns, maze: PointMaze, objective: Objective) -> dict[str, Any]:
    """Episodes under every column and under the trained objective, with some of the episodes."""
    scored = evaluate_returns(returns, standard_objectives(objective, maze.utility_threshold))
    return {
        "episodes": len(returns),
        "scores": {
            name: {key: score[key] for key in ("value", "low", "high")}
            for name, score in scored["scores"].items()
        },
        "mean_returns": scored["mean_returns"],
        "variances": scored["variances"],
        "quantiles": rounded(np.quantile(returns, LEVELS, axis=0).T.tolist()),
        "returns": rounded(returns[:SHOWN].tolist()),
    }
