"""Means over seeds with spreads and 95 % intervals, and which of them are tied with the best."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

LEVEL = 0.95
NORMAL = 1.959964


class Estimate(NamedTuple):
    """The mean over seeds, and what is known of its accuracy."""

    mean: float
    sd: float | None
    """Over seeds, with n - 1 below; None of a single seed."""
    error: float
    """Standard error of the mean."""
    freedom: float | None
    """Degrees of freedom of that error; None: normal."""

    @property
    def half(self) -> float:
        """Half the width of the 95 % interval."""
        return _quantile(self.freedom or np.inf) * self.error

    def record(self) -> dict[str, float | None]:
        return {**self._asdict(), "half": self.half}

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> "Estimate":
        return cls(*(record[name] for name in cls._fields))


def spread(values: Sequence[float]) -> dict[str, float | None]:
    """Mean and standard deviation over seeds."""
    return {"mean": float(np.mean(values)), "sd": float(np.std(values, ddof=1)) if len(values) > 1 else None}


def estimate(seeds: Sequence[Mapping[str, float]]) -> Estimate:
    """From each seed's value and its interval over episodes.

    The spread between seeds contains the noise of the episodes; where three seeds agree by chance
    to better than their episodes allow, the episodes' noise counts instead.
    """
    values = np.array([seed["value"] for seed in seeds])
    within = np.mean([((seed["high"] - seed["low"]) / (2 * NORMAL)) ** 2 for seed in seeds])
    sd = spread(values.tolist())["sd"]
    between = 0.0 if sd is None else sd**2
    error = float(np.sqrt(np.maximum(between, within) / len(values)))
    return Estimate(float(values.mean()), sd, error, len(values) - 1.0 if between > within else None)


def tied(one: Estimate, best: Estimate) -> bool:
    """Whether the 95 % interval of the difference contains 0 (Welch's)."""
    squares = np.array([one.error**2, best.error**2])
    total = squares.sum()
    if total == 0:
        return one.mean >= best.mean
    shares = squares**2 / np.array([one.freedom or np.inf, best.freedom or np.inf])
    freedom = total**2 / shares.sum() if shares.sum() > 0 else np.inf
    return bool(abs(best.mean - one.mean) <= _quantile(freedom) * np.sqrt(total))


def leaders(column: Mapping[str, Estimate]) -> list[str]:
    """The best row first, then all that are tied with it."""
    ranked = sorted(column, key=lambda name: -column[name].mean)
    return [name for name in ranked if name == ranked[0] or tied(column[name], column[ranked[0]])]


def _quantile(freedom: float) -> float:
    return float(stdtrit(freedom, (1 + LEVEL) / 2))
