"""From replicates of E[F(R)] to J with an interval, and how likely it is above another."""

from typing import NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float
from scipy.special import ndtr, ndtri, stdtrit

from aetdice.estimation.recording import Utilities
from aetdice.objectives import Aggregation, in_float64

DRAWS = 4_000
LEAST_FREEDOM = 3.0
ROUNDING = 1e-9
"""Of a value, below which a difference is none."""


class Interval(NamedTuple):
    """J, median-unbiased, between two bounds."""

    value: float
    low: float
    high: float
    level: float

    @property
    def half(self) -> float:
        return (self.high - self.low) / 2

    def widened(self, by: float) -> "Interval":
        """With a second component of the error, independent of the first."""
        down, up = (float(np.hypot(side, by)) for side in (self.value - self.low, self.high - self.value))
        return self._replace(low=self.value - down, high=self.value + up)


def covariance(
    replicates: Utilities, shared: Float[np.ndarray, "n n"], own: Float[np.ndarray, "n n"]
) -> Float[np.ndarray, "n n"]:
    """Of the estimate: that of the replicates, less the noise they alone have, plus that of the estimate."""
    found = np.atleast_2d(np.cov(replicates[1:], rowvar=False)) - own
    values, vectors = np.linalg.eigh(found)
    return (vectors * np.maximum(values, 0)) @ vectors.T + shared


def draws_of(
    centre: Float[np.ndarray, " n"],
    spread: Float[np.ndarray, "n n"],
    freedom: float,
    seed: int = 0,
) -> Float[np.ndarray, "draws n"]:
    """k as likely as the data leave it: Student's t with the sample size's degrees of freedom."""
    rng = np.random.default_rng(seed)
    values, vectors = np.linalg.eigh(spread)
    root = vectors * np.sqrt(np.maximum(values, 0))
    heavy = np.sqrt(max(freedom, LEAST_FREEDOM) / rng.chisquare(max(freedom, LEAST_FREEDOM), (DRAWS, 1)))
    half = rng.standard_normal((DRAWS, len(centre)))
    return centre + heavy * half @ root.T


def interval_of(
    aggregation: Aggregation,
    centre: Float[np.ndarray, " n"],
    draws: Float[np.ndarray, "draws n"],
    level: float,
) -> Interval:
    """The bias-corrected percentile interval of G(k).

    A concave G of a noisy k is too small on average. Percentiles are taken where they would be if
    half of the draws were below G(k) (Efron's BC), which corrects that and leaves monotone G alone.
    """
    values = in_float64(eqx.filter_vmap(aggregation))(draws)
    own = float(in_float64(aggregation)(centre))
    below = np.clip(np.mean(values < own) + np.mean(values == own) / 2, 1e-3, 1 - 1e-3)
    shift, tail = 2 * ndtri(below), ndtri((1 + level) / 2)
    value, low, high = np.quantile(values, ndtr([shift, shift - tail, shift + tail]))
    return Interval(float(value), float(low), float(high), level)


def normal_quantile(level: float, freedom: float = np.inf) -> float:
    """Half the width of an interval, in standard errors."""
    return float(stdtrit(max(freedom, LEAST_FREEDOM), (1 + level) / 2))


def improvement(
    aggregation: Aggregation,
    ours: Float[np.ndarray, "draws n"],
    theirs: Float[np.ndarray, "draws n"],
    disagreement: float,
    level: float,
) -> float:
    """P(J > J') over paired draws; what estimators disagree about counts as noise of its own."""
    values, logged = (np.asarray(in_float64(eqx.filter_vmap(aggregation))(each)) for each in (ours, theirs))
    gains = values - logged
    noise = np.random.default_rng(1).standard_normal(len(gains)) * disagreement / normal_quantile(level)
    return float(np.mean(gains + noise > ROUNDING * np.abs(logged)))
