"""Number rows by what they hold, reading nearly equal numbers as equal."""

import numpy as np
from jaxtyping import Float, Int

TOLERANCE = 1e-12
"""Relative to the largest entry: sums of the same rewards in another order are the same sum."""


def number_integers(
    keys: Int[np.ndarray, " rows"],
) -> tuple[Int[np.ndarray, " groups"], Int[np.ndarray, " rows"]]:
    """Distinct non-negative keys in order, and the position of each row's key among them."""
    if keys.size == 0:
        return keys, keys
    size = int(keys.max()) + 1
    if size > 8 * keys.size + 1024:
        return np.unique(keys, return_inverse=True)
    present = np.zeros(size, dtype=bool)
    present[keys] = True
    return np.flatnonzero(present), (np.cumsum(present) - 1)[keys]


def number_vectors(
    labels: Int[np.ndarray, " rows"], vectors: Float[np.ndarray, "rows m"]
) -> tuple[Int[np.ndarray, " groups"], Int[np.ndarray, " rows"]]:
    """One representative row per group of equal label and (nearly) equal vector; each row's group."""
    _, group = number_integers(labels)
    for column in vectors.T:
        rank = _rank(column)
        _, group = number_integers(group * (int(rank.max()) + 1) + rank)
    first = np.zeros(int(group.max()) + 1, dtype=np.int64)
    first[group[::-1]] = np.arange(group.size)[::-1]
    return first, group


def _rank(column: Float[np.ndarray, " rows"]) -> Int[np.ndarray, " rows"]:
    """The rank of each value among the distinct ones, values within the tolerance being one."""
    order = np.argsort(column, kind="stable")
    ascending = column[order]
    steps = np.diff(ascending) > TOLERANCE * np.abs(ascending[[0, -1]]).max()
    rank = np.empty(column.size, dtype=np.int64)
    rank[order] = np.concatenate([[0], np.cumsum(steps)])
    return rank
