"""A policy rolled out in a model of the recorded transitions: what any such model gives."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from aetdice.estimation.recording import Utilities

Utility = Callable[[Float[np.ndarray, "k m"]], Float[np.ndarray, "k n"]]
"""F of every row of returns."""


class Course(NamedTuple):
    """How rollouts went, and how much of it the data could tell."""

    returns: Float[np.ndarray, "count m"]
    unknown: float
    """Share of the steps for which nothing like the state and action was recorded."""
    thin: float
    """Share of the steps that rest on very few recorded ones, where something else might have followed."""
    use: Float[np.ndarray, " episodes"]
    """How often steps of every recorded episode were used."""
    distances: Float[np.ndarray, " steps"] = np.zeros(0)
    """Of every step, where near ones stand for those that were not recorded."""

    @property
    def effective_episodes(self) -> float:
        """(Σ u)² / Σ u²: how many episodes it rests on."""
        return float(self.use.sum() ** 2 / max(float(np.sum(self.use**2)), 1e-300))


@dataclass(frozen=True, eq=False)
class Rollouts:
    """Episodes of π in a model, and k as every replicate of the data has it."""

    course: Course
    """Of the data as they are."""
    utilities: Utilities
    """k of every replicate."""
    noise: Float[np.ndarray, "n n"]
    """Covariance of what the first k owes to the number of rollouts instead of the data."""
    replicate_noise: Float[np.ndarray, "n n"]
    """The same of the replicates' k among themselves."""
