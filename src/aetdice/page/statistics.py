"""How returns are distributed: quantiles, tail risk, fairness between objectives, commonest outcomes."""

import math
from typing import Any

import numpy as np
from jaxtyping import Float

from aetdice.evaluation.scores import QUANTILES
from aetdice.page.numbers import rounded

TAIL = 0.1
OUTCOMES, LEAST_COUNT = 6, 5
"""How many outcomes are listed, and how often one must have been seen."""

Returns = Float[np.ndarray, "episodes m"]
Vectors = Float[np.ndarray, "n m"]


def distribution(returns: Returns, most: int) -> dict[str, Any]:
    """What a page shows of episodes, and at most so many of them, evenly chosen."""
    chosen = np.unique(np.linspace(0, len(returns) - 1, min(most, len(returns))).astype(int))
    return {
        "episodes": len(returns),
        "mean": _numbers(returns.mean(axis=0)),
        "quantiles": [_numbers(np.quantile(returns, level, axis=0)) for level in QUANTILES],
        "tail": _numbers(tail_mean(returns)),
        "fairness": {"within": fairness(returns), "average": fairness(returns.mean(axis=0, keepdims=True))},
        "outcomes": commonest(returns),
        "sample": [_numbers(returns[index]) for index in chosen],
    }


def tail_mean(returns: Returns, share: float = TAIL) -> Float[np.ndarray, " m"]:
    """CVaR: of each objective the mean over its worst episodes."""
    count = max(1, math.ceil(share * len(returns)))
    return np.sort(returns, axis=0)[:count].mean(axis=0)


def fairness(returns: Vectors) -> dict[str, float] | None:
    """The smallest objective's share and the Gini coefficient, on average over episodes that bring something.

    Shares of negative returns mean nothing, so there are none.
    """
    total = returns.sum(axis=1)
    something = returns[total > 0]
    if returns.shape[1] < 2 or np.any(returns < 0) or not len(something):
        return None
    shares = something / something.sum(axis=1, keepdims=True)
    apart = np.abs(shares[:, :, None] - shares[:, None, :]).sum(axis=(1, 2))
    return {
        "share": rounded(float(shares.min(axis=1).mean())),
        "gini": rounded(float(apart.mean() / (2 * returns.shape[1]))),
    }


def commonest(returns: Returns) -> list[dict[str, Any]]:
    """The outcomes that were seen several times, with their shares."""
    found, counts = np.unique(np.round(returns, 4), axis=0, return_counts=True)
    order = [index for index in np.argsort(-counts)[:OUTCOMES] if counts[index] >= LEAST_COUNT]
    return [{"returns": _numbers(found[i]), "share": rounded(float(counts[i] / len(returns)))} for i in order]


def _numbers(values: Float[np.ndarray, " m"]) -> list[float]:
    return [rounded(float(value)) for value in values]
