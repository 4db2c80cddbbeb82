"""Means over seeds with 95 % intervals, and which of them are tied with the best."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student

LEVEL = 0.95
NORMAL = 1.959964


class Estimate(NamedTuple):
    """The mean over seeds, its standard error and the degrees of freedom of that (None: normal)."""

    mean: float
    error: float
    freedom: float | None

    @property
    def half(self) -> float:
        """Half the width of the 95 % interval."""
        return _quantile(self.freedom or np.inf) * self.error

    def record(self) -> dict[str, float | None]:
        return {**self._asdict(), "half": self.half}

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> "Estimate":
        return cls(*(record[name] for name in cls._fields))


def estimate(seeds: Sequence[Mapping[str, float]]) -> Estimate:
    """From each seed's value and its interval over episodes.

    The spread between seeds contains the noise of the episodes; where three seeds agree by chance
    to better than their episodes allow, the episodes' noise counts instead.
    """
    values = np.array([seed["value"] for seed in seeds])
    within = np.mean([((seed["high"] - seed["low"]) / (2 * NORMAL)) ** 2 for seed in seeds])
    between = np.var(values, ddof=1) if len(values) > 1 else 0.0
    variance = max(between, within) / len(values)
    freedom = len(values) - 1.0 if between > within else None
    return Estimate(float(values.mean()), float(np.sqrt(variance)), freedom)


def tied(one: Estimate, best: Estimate) -> bool:
    """Whether the 95 % interval of the difference contains 0 (Welch's)."""
    squares = np.array([one.error**2, best.error**2])
    total = squares.sum()
    if total == 0:
        return one.mean >= best.mean
    shares = squares**2 / np.array([one.freedom or np.inf, best.freedom or np.inf])
    freedom = total**2 / shares.sum() if shares.sum() > 0 else np.inf
    return bool(abs(best.mean - one.mean) <= _quantile(freedom) * np.sqrt(total))


def leaders(column: Mapping[str, Estimate]) -> set[str]:
    """The best row and all that are tied with it."""
    if not column:
        return set()
    best = max(column.values(), key=lambda entry: entry.mean)
    return {name for name, entry in column.items() if entry is best or tied(entry, best)}


def _quantile(freedom: float) -> float:
    return float(student.ppf((1 + LEVEL) / 2, freedom))
