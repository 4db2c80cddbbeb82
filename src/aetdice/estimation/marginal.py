"""Marginal ratios w = d^π/d^D of a fixed policy: the flow, followed forwards in time.

With the policy fixed the flow has one solution, so the DICE dual needs no β: of all ratios that are
linear in the basis these are the nearest to it (χ²).
"""

import numpy as np
from jaxtyping import Float

from aetdice.estimation.basis import Basis
from aetdice.estimation.recording import Recording, Utilities, Weights


def marginal_ratios(
    recording: Recording, basis: Basis, weights: Weights
) -> Float[np.ndarray, "replicates steps"]:
    """w of every step; per episode that it stands for, Σ_t w d^D = 1 while no episode has ended."""
    steps = recording.steps
    ratios = np.zeros((len(weights), recording.episodes.steps))
    mass = weights
    for time in range(int(recording.episodes.lengths.max())):
        rows = recording.at(time)
        own = weights[:, recording.episode[rows]] * recording.uncensored[rows]
        ratios[:, rows] = basis.ratios(time, own, mass)
        mass = own * ratios[:, rows] * steps.bootstraps[rows]
    return ratios


def weighted_utilities(
    recording: Recording, weights: Weights, ratios: Float[np.ndarray, "replicates steps"]
) -> Utilities:
    """k = Σ w d^D F(R) over the steps that end an episode, of which the mass is 1."""
    over = np.flatnonzero(~recording.steps.bootstraps)
    mass = weights[:, recording.episode[over]] * recording.uncensored[over] * ratios[:, over]
    ends = recording.utilities_of(recording.steps.next_accrued[over])
    with np.errstate(invalid="ignore", divide="ignore"):
        return mass @ ends / mass.sum(axis=1, keepdims=True)


def effective_episodes(recording: Recording, ratios: Float[np.ndarray, " steps"]) -> Float[np.ndarray, " t"]:
    """(Σ w)² / Σ w² of the steps at every time: on how many recorded steps the estimate rests there."""
    found = []
    for time in range(int(recording.episodes.lengths.max())):
        own = ratios[recording.at(time)]
        found.append(own.sum() ** 2 / max(float(np.sum(own**2)), 1e-300))
    return np.array(found)
