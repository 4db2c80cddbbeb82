"""What the members of a population attain in the maze, as results keep it."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from aetdice.envs import PointMaze
from aetdice.evaluation.rollout import evaluate_returns, sample_returns_of, standard_objectives
from aetdice.learning.run import Member, Run
from aetdice.objectives import Objective
from aetdice.studies.members import SEED, mean_score, one_of_each_seed, rounded, rows_of

Returns = Float[np.ndarray, "episodes m"]

LEVELS = np.linspace(0, 1, 51)
SHOWN = 150
"""Episodes of each seed that are kept for the scatter."""


def measure(run: Run, maze: PointMaze, episodes: int, names: Sequence[str]) -> dict[str, Any]:
    """Every setting of every row (named, in the order of the run's objectives), and the twins."""
    count, firsts = len(run.members), one_of_each_seed(run)
    acting = [m.policy for m in run.members] + [m.twin for m in firsts.values()]
    returns = sample_returns_of([one.policy for one in acting], maze, episodes, SEED)
    twins = dict(zip(firsts, returns[count:], strict=True))

    def scored(index: int, member: Member) -> dict[str, Any]:
        twin = float(member.objective(jnp.asarray(twins[member.params["seed"]])))
        return {**scores_of(returns[index], maze, member.objective), "twin": twin}

    rows = rows_of(run, names, scored)
    for row in rows.values():
        row["best"] = int(np.argmax([mean_score(setting["seeds"]) for setting in row["settings"]]))
    first = run.members[0].objective
    own = [{"seed": seed, **scores_of(found, maze, first)} for seed, found in twins.items()]
    return {"rows": rows, "twins": own, "seconds": run.seconds}


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
