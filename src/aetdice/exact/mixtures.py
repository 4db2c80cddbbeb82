"""The best mixture of given returns: max_p G(Σ_i p_i F(R_i)), concave in p and solved exactly."""

from typing import NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float, Int

from aetdice.exact.optimum import smooth
from aetdice.exact.simplex import maximise_on_simplex
from aetdice.objectives import Aggregation, Objective, in_float64

KEPT = 6
"""Rows beside those of the mixture that are named as promising."""
LEAST = 1e-4
"""Rows that are drawn less often than this are left out of a mixture."""
MOST_ROUNDS = 200


class Mixture(NamedTuple):
    """Rows of the returns, how often each is drawn, and the J that results."""

    value: float
    rows: Int[np.ndarray, " k"]
    probabilities: Float[np.ndarray, " k"]
    promising: Int[np.ndarray, " kept"]
    """Rows that would gain most, or lose least, if they were drawn a little."""


def best_mixture(objective: Objective, returns: Float[np.ndarray, "n m"]) -> Mixture:
    """argmax_p G(Σ p_i F(R_i))."""
    utilities = np.asarray(in_float64(eqx.filter_vmap(objective.utility))(returns))
    return mix_utilities(objective.aggregation, utilities)


def mix_utilities(aggregation: Aggregation, utilities: Float[np.ndarray, "n k"]) -> Mixture:
    """argmax_p G(Σ p_i x_i): Frank-Wolfe that re-optimises over all rows it has found so far."""
    aggregate = smooth(aggregation)
    rows = [int(np.argmax(utilities @ aggregate(utilities.mean(axis=0))[1]))]
    weights = np.ones(1)
    for _ in range(MOST_ROUNDS):
        value, slope, _ = aggregate(weights @ utilities[rows])
        gains = (utilities - weights @ utilities[rows]) @ slope
        best = int(np.argmax(gains))
        if best in rows or gains[best] <= 1e-9 * (1 + abs(value)):
            break
        rows.append(best)
        weights = maximise_on_simplex(aggregate, utilities[rows], np.append(weights, 0.0))
    used = weights > LEAST
    weights = np.where(used, weights, 0) / weights[used].sum()
    value, slope, _ = aggregate(weights @ utilities[rows])
    return Mixture(value, np.array(rows)[used], weights[used], np.argsort(-(utilities @ slope))[:KEPT])
