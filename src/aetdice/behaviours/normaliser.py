"""Running mean and variance of a stream of rows."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

SMALLEST = 1e-8


class Running(NamedTuple):
    """Mean and variance of the rows seen so far; none seen is mean 0 and variance 1."""

    mean: Float[np.ndarray, " k"]
    variance: Float[np.ndarray, " k"]
    total: Float[np.ndarray, ""]
    """How many."""

    @property
    def spread(self) -> Float[np.ndarray, " k"]:
        """The standard deviation, never zero."""
        return np.sqrt(self.variance + SMALLEST)


def nothing_seen(size: int) -> Running:
    return Running(np.zeros(size), np.ones(size), np.array(0.0))


def merge(running: Running, rows: Float[np.ndarray, "rows k"]) -> Running:
    """The moments of everything seen before and of these rows, as if taken at once."""
    rows = np.asarray(rows, dtype=np.float64)
    total = running.total + len(rows)
    share = len(rows) / total
    gap = rows.mean(axis=0) - running.mean
    variance = (1 - share) * running.variance + share * rows.var(axis=0) + share * (1 - share) * gap**2
    return Running(running.mean + share * gap, variance, np.array(total))
