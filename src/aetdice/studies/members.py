"""The members of a population row by row and setting by setting, as results keep them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from aetdice.learning.run import Member, Run

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


def rows_of(
    run: Run, names: Sequence[str], more: Callable[[int, Member], dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Rows named in the order of the run's objectives: diagnostics of every setting and seed, and `more`."""
    size = len(run.members) // len(names)
    return {name: _row(run, range(i * size, (i + 1) * size), i, more) for i, name in enumerate(names)}


def _row(
    run: Run, members: range, objective: int, more: Callable[[int, Member], dict[str, Any]]
) -> dict[str, Any]:
    settings: dict[str, dict[str, Any]] = {}
    for index in members:
        member = run.members[index]
        own = {name: value for name, value in member.params.items() if name not in ("objective", "seed")}
        setting = settings.setdefault(str(own), {"params": own, "seeds": []})
        setting["seeds"].append(
            {
                "seed": member.params["seed"],
                **more(index, member),
                "diagnostics": {n: member.diagnostics[n] for n in DIAGNOSTICS if n in member.diagnostics},
            }
        )
    trained, selection = run.members[members[0]].objective, run.selections[objective]
    return {
        "objective": trained.name,
        "data_score": float(trained(jnp.asarray(run.data_returns, jnp.float32))),
        "settings": list(settings.values()),
        "selected": (selection.chosen - members[0]) // (len(members) // len(settings)),
        "rule": selection.rule,
    }


def one_of_each_seed(run: Run) -> dict[int, Member]:
    """A member of each seed: those of one seed share their twin."""
    return dict(sorted({member.params["seed"]: member for member in run.members}.items()))


def mean_score(seeds: Sequence[Mapping[str, Any]]) -> float:
    """A setting's score under the objective it was trained for, over its seeds."""
    return float(np.mean([seed["scores"]["trained"]["value"] for seed in seeds]))


def rounded(values: Iterable[Iterable[float]]) -> list[list[float]]:
    """Four digits, which is more than a figure shows."""
    return [[float(f"{entry:.4g}") for entry in row] for row in values]
