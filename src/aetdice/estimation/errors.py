"""What errors of E[F(R)] amount to in J."""

import numpy as np
from jaxtyping import Float

from aetdice.estimation.intervals import normal_quantile
from aetdice.estimation.recording import Utilities
from aetdice.objectives import Objective, in_float64


def values_of(objective: Objective, utilities: Utilities) -> Float[np.ndarray, " replicates"]:
    """J of every row."""
    aggregate = in_float64(objective.aggregation)
    return np.array([float(aggregate(row)) for row in utilities])


def mean_error(
    objective: Objective, found: Float[np.ndarray, " n"], errors: Utilities, level: float
) -> float:
    """Of a mean error and replicates of it: its size and its noise."""
    values = values_of(objective, np.concatenate([found[None], found - errors]))
    return float(np.hypot(values[1] - values[0], normal_quantile(level) * np.std(values[2:], ddof=1)))


def typical_error(
    objective: Objective, found: Float[np.ndarray, " n"], errors: Utilities, level: float
) -> float:
    """Of several errors: half the width of an interval that holds most of their like."""
    values = values_of(objective, np.concatenate([found[None], found + errors]))
    return float(normal_quantile(level) * np.sqrt(np.mean((values[1:] - values[0]) ** 2)))
