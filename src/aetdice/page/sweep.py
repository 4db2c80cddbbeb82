"""What varied between the members of a run, as sliders go through it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from aetdice.learning.run import Run
from aetdice.objectives import Objective
from aetdice.page.words import short_name, symbol

FIXED = ("algorithm", "objective")


def axes_of(run: Run) -> list[dict[str, Any]]:
    """One per thing that varied, the objective first: its name, the values in order, and each member's place.

    Moving along the objective goes to the member selected for it.
    """
    objectives = [member.objective for member in run.members]
    axes = [_axis(*_objective_values(objectives))]
    for name in run.members[0].params:
        if name not in FIXED:
            axes.append(_axis(symbol(name), [member.params[name] for member in run.members]))
    return [axis for axis in axes if len(axis["labels"]) > 1]


def _objective_values(objectives: Sequence[Objective]) -> tuple[str, list[Any]]:
    """The one parameter that the objectives differ in, or their names."""
    shown = [{name: float(np.asarray(value)) for name, value in each.shown.items()} for each in objectives]
    if len({each.label for each in objectives}) == 1:
        varied = [name for name in shown[0] if len({one[name] for one in shown}) > 1]
        if len(varied) == 1 and len({each.name for each in objectives}) == len(
            {one[varied[0]] for one in shown}
        ):
            return symbol(varied[0]), [one[varied[0]] for one in shown]
    names = list(map(short_name, objectives))
    if len(set(names)) < len({each.name for each in objectives}):
        names = [each.name for each in objectives]
    return "objective", names


def _axis(name: str, values: list[Any]) -> dict[str, Any]:
    """Numbers go up; names stay in the order they came in."""
    distinct = list(dict.fromkeys(values))
    if all(isinstance(value, int | float) for value in distinct):
        distinct.sort()
    labels = [f"{value:g}" if isinstance(value, float) else str(value) for value in distinct]
    return {"name": name, "labels": labels, "places": [distinct.index(value) for value in values]}
