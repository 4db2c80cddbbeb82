"""Importance sampling with an estimated behaviour: per episode and per step, self-normalised."""

import numpy as np
from jaxtyping import Float

from aetdice.estimation.acting import Acting
from aetdice.estimation.recording import Recording, Utilities, Weights

LARGEST = 50.0
"""Of the logarithm of a product of ratios."""
IMPOSSIBLE = -1e4
"""The logarithm of a probability of 0: large enough to stay so in a product."""


def action_ratios(recording: Recording, acting: Acting, behaviour: Acting) -> Float[np.ndarray, " steps"]:
    """Π_{u≤t} π/b of every step: how much likelier π is to have come so far."""
    steps = recording.steps
    likely, ours = (each.likelihood(recording.before, steps.actions) for each in (behaviour, acting))
    # A step that was recorded is not impossible, whatever an estimated behaviour says.
    logs = np.maximum(ours, IMPOSSIBLE) - np.maximum(likely, -LARGEST)
    total = np.cumsum(logs)
    begun = total[steps.initial] - logs[steps.initial]
    return np.exp(np.minimum(total - begun[recording.episode], LARGEST))


def per_episode(recording: Recording, weights: Weights, ratios: Float[np.ndarray, " steps"]) -> Utilities:
    """Σ ρ F(R) / Σ ρ over episodes that were recorded to their end."""
    over = np.flatnonzero(~recording.steps.bootstraps)
    mass = weights[:, recording.episode[over]] * recording.uncensored[over] * ratios[over]
    ends = recording.utilities_of(recording.steps.next_accrued[over])
    with np.errstate(invalid="ignore", divide="ignore"):
        return mass @ ends / mass.sum(axis=1, keepdims=True)


def per_step(recording: Recording, weights: Weights, ratios: Float[np.ndarray, " steps"]) -> Utilities:
    """F(0) + Σ_t Σ ρ_t r̃_t / Σ ρ_t; an episode that is over keeps its last ratio, and earns nothing."""
    steps, total = recording.steps, np.repeat(recording.steps.zero_utility[None], len(weights), axis=0)
    ended = np.zeros(len(weights))
    for time in range(int(recording.episodes.lengths.max())):
        rows = recording.at(time)
        mass = weights[:, recording.episode[rows]] * recording.uncensored[rows] * ratios[rows]
        normal = mass.sum(axis=1) + ended
        total = total + mass @ steps.transformed_rewards[rows] / np.maximum(normal, 1e-300)[:, None]
        ended = ended + mass[:, steps.terminated[rows]].sum(axis=1)
    return total


def sample_size(ratios: Float[np.ndarray, " k"]) -> float:
    """(Σ ρ)² / Σ ρ²."""
    return float(ratios.sum() ** 2 / max(float(np.sum(ratios**2)), 1e-300))
