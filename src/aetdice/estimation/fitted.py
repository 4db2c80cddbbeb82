"""Fitted evaluation, and what importance ratios add to make it doubly robust."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from aetdice.estimation.basis import Basis
from aetdice.estimation.recording import Recording, Utilities, Weights


class Fitted(NamedTuple):
    """k as the fitted values have it, and by how much the residuals of recorded steps correct it."""

    value: Utilities
    correction: Utilities


def fitted_evaluation(
    recording: Recording,
    basis: Basis,
    weights: Weights,
    ratios: Float[np.ndarray, "replicates steps"] | None = None,
    judges: Weights | None = None,
) -> Fitted:
    """Q_t = E[r̃ + V_{t+1}], V_t = Σ_a π Q_t, backwards in time; k = F(0) + E[V_0].

    The correction is E[Σ_t ratio (r̃ + V_{t+1} - Q_t)]: with it the estimate is right if either the
    values are or the ratios, d^π/d^D or those of the actions so far. `judges` are other episodes than
    the values are fitted to: residuals of the same ones are too small.
    """
    judges = weights if judges is None else judges
    steps, count = recording.steps, len(weights)
    size = steps.transformed_rewards.shape[1]
    total = judges.sum(axis=1)
    correction = np.zeros((count, size))
    fitted = np.zeros((count, 0, size))
    for time in reversed(range(int(recording.episodes.lengths.max()))):
        rows = recording.at(time)
        targets = np.repeat(steps.transformed_rewards[rows][None], count, axis=0)
        if fitted.size:
            targets += steps.bootstraps[rows][None, :, None] * basis.following(time, fitted)
        own = weights[:, recording.episode[rows]]
        fitted = basis.fit(time, own, targets)
        if ratios is not None:
            mass = judges[:, recording.episode[rows]] * recording.uncensored[rows] * ratios[:, rows]
            correction += np.einsum("bk,bkn->bn", mass, targets - basis.values(time, fitted))
    first = np.einsum("be,ben->bn", judges, basis.initial(fitted))
    with np.errstate(invalid="ignore", divide="ignore"):  # of a few episodes a replicate may have no judge
        return Fitted(steps.zero_utility + first / total[:, None], correction / total[:, None])


def doubly_robust(
    recording: Recording,
    basis: Basis,
    weights: Weights,
    ratios: Float[np.ndarray, "replicates steps"],
    seed: int = 0,
) -> Utilities:
    """Values of one half of the episodes, corrected by the ratios of the other; and the other way round."""
    half = np.random.default_rng(seed).permutation(recording.count) % 2 == 0
    parts = [(weights * ours, weights * ~ours) for ours in (half, ~half)]
    found = [fitted_evaluation(recording, basis, fit, ratios, judges) for fit, judges in parts]
    return np.mean([each.value + each.correction for each in found], axis=0)
