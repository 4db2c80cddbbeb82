"""How much of what follows a state and an action is chance, as far as recorded steps can tell."""

import numpy as np
from jaxtyping import Float, Shaped
from scipy.spatial import cKDTree

from aetdice.data.episodes import Episodes
from aetdice.data.successors import followed, frames_before, pooled_outcomes

STEPS = 20_000
"""Steps of a continuous dataset that are compared with their nearest neighbour."""
NEIGHBOURS = 8
NEAR = 0.1
"""Continuous states count as the same if they are nearer than so many median steps."""
LEAST_PAIRS = 30


def chance_share(episodes: Episodes) -> float:
    """The share of what a step does that is chance: 0 for deterministic transitions, at most 1.

    Of whole numbers: the probability that what follows a state and an action is not the likeliest. Of
    continuous states: half the mean square by which steps from nearly the same state and action of two
    episodes differ, relative to the variance of all steps; 0 where no two episodes come so near.
    """
    outcomes = pooled_outcomes(episodes, episodes)
    if outcomes is not None:
        return float(np.mean(1 - outcomes.probabilities.max(axis=1)))
    if np.issubdtype(episodes.observations.dtype, np.integer):
        return 0.0
    return _differences(episodes)


def _differences(episodes: Episodes) -> float:
    known = np.flatnonzero(followed(episodes))
    before = frames_before(episodes)[known]
    states = episodes.observations.reshape(len(episodes.observations), -1).astype(np.float64)
    effects = _scaled(np.column_stack([states[before + 1] - states[before], episodes.rewards[known]]))
    spread = _spread(states)
    radius = NEAR * np.median(np.linalg.norm((states[before + 1] - states[before]) / spread, axis=1))
    actions = episodes.actions.reshape(episodes.steps, -1)[known]
    discrete = np.issubdtype(actions.dtype, np.integer)
    apart = actions * (4 * radius + 1) if discrete else _scaled(actions)
    places = np.column_stack([states[before] / spread, apart])
    rows = np.random.default_rng(0).permutation(len(known))[:STEPS]
    distance, near = cKDTree(places).query(places[rows], NEIGHBOURS + 1, distance_upper_bound=radius)
    episode = np.append(np.repeat(np.arange(len(episodes)), episodes.lengths)[known], -1)
    other = np.isfinite(distance) & (episode[near] != episode[rows][:, None])
    pairs = np.flatnonzero(other.any(axis=1))
    if len(pairs) < LEAST_PAIRS:
        return 0.0
    partner = near[pairs, other[pairs].argmax(axis=1)]
    differences = np.mean((effects[partner] - effects[rows[pairs]]) ** 2) / 2
    return float(min(1.0, differences / effects.var(axis=0).mean()))


def _spread(values: Shaped[np.ndarray, "rows k"]) -> Float[np.ndarray, " k"]:
    spread = values.std(axis=0)
    return np.where(spread > 1e-9, spread, 1.0)


def _scaled(values: Shaped[np.ndarray, "rows k"]) -> Float[np.ndarray, "rows k"]:
    return values / _spread(values)
