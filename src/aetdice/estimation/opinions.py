"""Second opinions: estimators that make other mistakes than a model does, and which of them to hear."""

from typing import NamedTuple

import numpy as np

from aetdice.estimation.acting import Acting, DiscreteActing
from aetdice.estimation.basis import RandomFeatures, Tabular
from aetdice.estimation.fitted import doubly_robust, fitted_evaluation
from aetdice.estimation.importance import action_ratios, per_episode, per_step, sample_size
from aetdice.estimation.marginal import effective_episodes, marginal_ratios, weighted_utilities
from aetdice.estimation.recording import Recording, Utilities, Weights

LEAST_SIZE = 30.0
"""Effective number of episodes below which an estimate by ratios is not heard."""
MOST_UNRECORDED = 0.02
"""Of what π does along the log, for tables to be heard."""
MOST_STEPS = 60_000
"""For features: more episodes than have so many steps are left out."""
LONGEST = 100
"""Beyond so many steps the errors of fitted features have piled up."""


class Opinion(NamedTuple):
    """What one estimator makes of it."""

    name: str
    utilities: Utilities
    heard: bool
    """Whether it is sound enough here for a disagreement to count."""
    why: str
    cloned: bool = False
    """Whether it takes the cloning twin for the behaviour."""


def opinions_on(
    recording: Recording, acting: Acting, behaviour: Acting | None, weights: Weights, tabular: bool
) -> list[Opinion]:
    """All that can be had."""
    counted = tabular and isinstance(acting, DiscreteActing)
    basis = Tabular.of(recording, acting) if counted else RandomFeatures.of(recording, acting)  # type: ignore[arg-type]
    ratios = marginal_ratios(recording, basis, weights)
    fitted = fitted_evaluation(recording, basis, weights)
    least = float(effective_episodes(recording, ratios[0]).min())
    if isinstance(basis, Tabular):
        lost = basis.unrecorded()
        heard, why = lost <= MOST_UNRECORDED, f"{lost:.1%} of what it does along the log was never done there"
    else:
        heard = recording.horizon <= LONGEST
        why = f"features over {recording.horizon} steps"
    found = [
        Opinion("fitted evaluation", fitted.value, heard, why),
        Opinion(
            "marginal ratios",
            weighted_utilities(recording, weights, ratios),
            heard and least >= LEAST_SIZE,
            f"{why}; at least {least:.0f} effective steps at every time",
        ),
    ]
    if behaviour is not None:
        found += _by_products(recording, acting, behaviour, weights, basis)
    return [opinion for opinion in found if np.all(np.isfinite(opinion.utilities))]


def _by_products(
    recording: Recording,
    acting: Acting,
    behaviour: Acting,
    weights: Weights,
    basis: Tabular | RandomFeatures,
) -> list[Opinion]:
    products = action_ratios(recording, acting, behaviour)
    over = np.flatnonzero(~recording.steps.bootstraps)
    size = sample_size(products[over])
    heard, why = size >= LEAST_SIZE, f"products of ratios rest on {size:.0f} episodes"
    normal = _normalised(recording, weights, products)
    robust = doubly_robust(recording, basis, weights, normal)
    return [
        Opinion("importance sampling", per_episode(recording, weights, products), heard, why, True),
        Opinion("importance sampling per step", per_step(recording, weights, products), heard, why, True),
        Opinion("doubly robust", robust, heard, why, True),
    ]


def _normalised(recording: Recording, weights: Weights, products: np.ndarray) -> np.ndarray:
    """Ratios whose mean over all episodes, ended ones included, is 1 at every time."""
    found = np.zeros((len(weights), len(products)))
    ended = np.zeros(len(weights))
    for time in range(int(recording.episodes.lengths.max())):
        rows = recording.at(time)
        own = weights[:, recording.episode[rows]] * recording.uncensored[rows] * products[rows]
        mean = (own.sum(axis=1) + ended) / weights.sum(axis=1)
        found[:, rows] = products[rows] / np.maximum(mean, 1e-300)[:, None]
        ended = ended + own[:, recording.steps.terminated[rows]].sum(axis=1)
    return found
