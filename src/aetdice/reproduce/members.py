"""What the members of a population attain in an environment, setting by setting, as results keep it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import jax.numpy as jnp
import numpy as np

from aetdice.networks import Policy
from aetdice.objectives import Objective
from aetdice.runs import Run, Selection

E = TypeVar("E")

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


@dataclass(frozen=True)
class Stage(Generic[E]):
    """Where policies perform, and what is kept of it."""

    play: Callable[[Policy], E]
    """The episodes of a policy."""
    record: Callable[[E, Objective], dict[str, Any]]
    """What results keep of them; `scores` has the objective given as `trained`."""
    value: Callable[[E, Objective], float]
    """J on the episodes."""
    bulky: tuple[str, ...]
    """Entries of the record that are kept of the selected and of the best setting only."""


def measure(run: Run, names: Sequence[str], stage: Stage[E]) -> dict[str, Any]:
    """Every setting of every row (named, in the order of the run's objectives), and the twins."""
    twins = {
        member.params["seed"]: stage.play(member.twin.policy)
        for member in {member.params["seed"]: member for member in run.members}.values()
    }
    size = len(run.members) // len(names)
    rows = {
        name: _row(run, stage, twins, range(i * size, (i + 1) * size), run.selections[i])
        for i, name in enumerate(names)
    }
    first = run.members[0].objective
    own = [{"seed": seed, **stage.record(episodes, first)} for seed, episodes in sorted(twins.items())]
    return {"rows": rows, "twins": own, "seconds": run.seconds}


def _row(
    run: Run, stage: Stage[E], twins: Mapping[int, E], members: range, selection: Selection
) -> dict[str, Any]:
    settings: dict[str, dict[str, Any]] = {}
    for index in members:
        member = run.members[index]
        seed = member.params["seed"]
        own = {name: value for name, value in member.params.items() if name not in ("objective", "seed")}
        setting = settings.setdefault(str(own), {"params": own, "seeds": []})
        setting["seeds"].append(
            {
                "seed": seed,
                **stage.record(stage.play(member.policy.policy), member.objective),
                "twin": stage.value(twins[seed], member.objective),
                "diagnostics": {n: member.diagnostics[n] for n in DIAGNOSTICS if n in member.diagnostics},
            }
        )
    listed = list(settings.values())
    means = [np.mean([s["scores"]["trained"]["value"] for s in row["seeds"]]) for row in listed]
    best = int(np.argmax(means))
    selected = (selection.chosen - members[0]) // (len(members) // len(listed))
    for i, row in enumerate(listed):
        for seed in row["seeds"] if i not in (best, selected) else ():
            for entry in stage.bulky:
                del seed[entry]
    objective = run.members[members[0]].objective
    return {
        "objective": objective.name,
        "data_score": float(objective(jnp.asarray(run.data_returns, jnp.float32))),
        "settings": listed,
        "selected": selected,
        "rule": selection.rule,
        "best": best,
    }


def rounded(values: Iterable[Iterable[float]]) -> list[list[float]]:
    """Four digits, which is more than a figure shows."""
    return [[float(f"{entry:.4g}") for entry in row] for row in values]
