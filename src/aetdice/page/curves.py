"""Training curves, from the metrics that a run left in its folder."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from aetdice.errors import InputError
from aetdice.learning.trackers import METRICS
from aetdice.page.numbers import rounded

Curves = dict[str, dict[str, dict[str, Any]]]
"""By stage and metric: `steps`, and `values` with a list per member."""
POINTS = 80
"""Of a curve, at most."""
TITLES = {
    "claimed_value": "J that the weights promise",
    "dual_value": "dual loss",
    "effective_sample_size": "share of the data that counts",
    "flow_violation": "imbalance of the flow",
    "mass_violation": "mass that is lost",
    "zero_share": "share of steps with weight 0",
    "log_likelihood": "log-likelihood of the policy",
    "twin_log_likelihood": "log-likelihood of the twin",
}


def read_curves(folder: Path, members: int) -> Curves:
    """Nothing where no metrics were kept, or at one step only; metrics that are vectors are left out."""
    path = folder / METRICS
    if not path.is_file():
        return {}
    stages: dict[str, dict[int, dict[str, Any]]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        try:
            row = json.loads(line)
            # After an interruption some steps are done again, and the later line is the true one.
            stages.setdefault(row["stage"], {})[int(row["step"])] = row
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise InputError(f"line {number} of {path} cannot be read; remove it and try again") from error
    drawn = {stage: _curves(rows, members) for stage, rows in stages.items() if len(rows) > 1}
    return {stage: curves for stage, curves in drawn.items() if curves}


def _curves(rows: dict[int, dict[str, Any]], members: int) -> dict[str, dict[str, Any]]:
    steps = sorted(rows)
    kept = [steps[i] for i in np.unique(np.linspace(0, len(steps) - 1, min(POINTS, len(steps))).astype(int))]
    names = [name for name, value in rows[steps[-1]].items() if _is_scalar(value, members)]
    return {
        TITLES.get(name, name.replace("_", " ")): {
            "steps": kept,
            "values": [[_entry(rows[step].get(name), member) for step in kept] for member in range(members)],
        }
        for name in names
    }


def _is_scalar(value: Any, members: int) -> bool:
    """Whether a metric has one number per member."""
    return isinstance(value, list) and len(value) == members and all(_is_number(each) for each in value)


def _entry(values: Any, member: int) -> float | None:
    fits = isinstance(values, list) and member < len(values) and _is_number(values[member])
    return rounded(values[member]) if fits else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
