"""What the members of a population attain in the maze, as results keep it."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from aetdice.envs import PointMaze
from aetdice.evaluation import evaluate_returns, sample_returns, standard_objectives
from aetdice.objectives import Objective
from aetdice.runs import Run, Selection

Returns = Float[np.ndarray, "episodes m"]

LEVELS = np.linspace(0, 1, 51)
SHOWN = 150
"""Episodes of each seed that are kept for the scatter."""
SEED = 2026
DIAGNOSTICS = (
    "claimed_value",
    "held_out_claimed_value",
    "mass_violation",
    "flow_violation",
    "held_out_flow_violation",
    "effective_sample_size",
    "distance_to_twin",
    "bellman_error",
    "start_value",
)


def measure(run: Run, maze: PointMaze, episodes: int, names: Sequence[str]) -> dict[str, Any]:
    """Every setting of every row (named, in the order of the run's objectives), and the twins."""
    twins = {
        member.params["seed"]: sample_returns(member.twin.policy, maze, episodes, SEED)
        for member in {member.params["seed"]: member for member in run.members}.values()
    }
    size = len(run.members) // len(names)
    rows = {
        name: _row(run, maze, twins, range(i * size, (i + 1) * size), run.selections[i])
        for i, name in enumerate(names)
    }
    first = run.members[0].objective
    own = [{"seed": seed, **scores_of(returns, maze, first)} for seed, returns in sorted(twins.items())]
    return {"rows": rows, "twins": own, "seconds": run.seconds}


def _row(
    run: Run, maze: PointMaze, twins: Mapping[int, Returns], members: range, selection: Selection
) -> dict[str, Any]:
    settings: dict[str, dict[str, Any]] = {}
    for index in members:
        member = run.members[index]
        seed = member.params["seed"]
        own = {name: value for name, value in member.params.items() if name not in ("objective", "seed")}
        setting = settings.setdefault(str(own), {"params": own, "seeds": []})
        returns = sample_returns(member.policy.policy, maze, len(twins[seed]), SEED)
        setting["seeds"].append(
            {
                "seed": seed,
                **scores_of(returns, maze, member.objective),
                "twin": float(member.objective(jnp.asarray(twins[seed]))),
                "diagnostics": {n: member.diagnostics[n] for n in DIAGNOSTICS if n in member.diagnostics},
            }
        )
    listed = list(settings.values())
    means = [np.mean([s["scores"]["trained"]["value"] for s in row["seeds"]]) for row in listed]
    best = int(np.argmax(means))
    selected = (selection.chosen - members[0]) // (len(members) // len(listed))
    for i, row in enumerate(listed):
        for seed in row["seeds"] if i not in (best, selected) else ():
            del seed["returns"], seed["quantiles"]
    objective = run.members[members[0]].objective
    return {
        "objective": objective.name,
        "data_score": float(objective(jnp.asarray(run.data_returns, jnp.float32))),
        "settings": listed,
        "selected": selected,
        "rule": selection.rule,
        "best": best,
    }


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
        "quantiles": rounded(np.quantile(returns, LEVELS, axis=0).T),
        "returns": rounded(returns[:SHOWN]),
    }


def rounded(values: Float[np.ndarray, "n m"]) -> list[list[float]]:
    """Four digits, which is more than a figure shows."""
    return [[float(f"{entry:.4g}") for entry in row] for row in values.tolist()]
