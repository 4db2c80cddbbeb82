"""A policy rolled out in a model of the recorded transitions: what any such model gives."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from aetdice.estimation.recording import Utilities


@dataclass(frozen=True, eq=False)
class Rollouts:
    """Episodes of π in a model, and how much of it the data could tell."""

    returns: Float[np.ndarray, "count m"]
    utilities: Utilities
    """k of every replicate."""
    noise: Float[np.ndarray, "n n"]
    """Covariance of what the first k owes to the number of rollouts instead of the data."""
    replicate_noise: Float[np.ndarray, "n n"]
    """The same of the replicates' k among themselves."""
    unknown: float
    """Share of the steps for which nothing like the state and action was recorded."""
    thin: float
    """Share of the steps that rest on very few recorded ones, where something else might have followed."""
    effective_episodes: float
    """(Σ u)² / Σ u² of how often each recorded episode was used."""


def effective_number(use: Float[np.ndarray, " episodes"]) -> float:
    """(Σ u)² / Σ u²."""
    return float(use.sum() ** 2 / max(float(np.sum(use**2)), 1e-300))
