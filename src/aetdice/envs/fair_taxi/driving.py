"""Driving by the environment's tables: policies by value iteration, and episodes that are recorded."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int

from aetdice.data import Episodes
from aetdice.envs.environment import Tables
from aetdice.envs.fair_taxi.taxi import FairTaxi

DISCOUNT = 0.97

Choose = Callable[[int, Int[np.ndarray, " n"]], Int[np.ndarray, " n"]]
"""The actions of n episodes, by time step and states."""


def greedy_policies(
    taxi: FairTaxi, tables: Tables, shares: Float[np.ndarray, "policies groups"]
) -> Int[np.ndarray, "policies s"]:
    """The best action of every state for every weight vector, in units of a delivery, by value iteration."""
    worth = np.abs(np.array(taxi.deliveries)) / taxi.scale
    weights = shares / np.where(worth > 0, worth, 1)
    expected = np.sum(tables.probability[..., None] * tables.reward, axis=2)
    scalar = np.einsum("sam,pm->psa", expected, weights)
    quality = np.zeros_like(scalar)
    for _ in range(4 * taxi.horizon):
        following = quality.max(axis=2)[:, tables.next_state]
        quality = scalar + DISCOUNT * np.sum(tables.probability * following, axis=3)
    return quality.argmax(axis=2)


def record(
    taxi: FairTaxi, tables: Tables, choose: Choose, episodes: int, rng: np.random.Generator
) -> Episodes:
    """Episodes of full length, all stepped together."""
    states = np.full((episodes, taxi.horizon + 1), taxi.initial_state)
    actions = np.zeros((episodes, taxi.horizon), dtype=np.int64)
    rewards = np.zeros((episodes, taxi.horizon, len(taxi.objectives)))
    for t in range(taxi.horizon):
        actions[:, t] = choose(t, states[:, t])
        pairs = (states[:, t], actions[:, t])
        outcomes = (*pairs, _draw(tables.probability[pairs], rng))
        states[:, t + 1], rewards[:, t] = tables.next_state[outcomes], tables.reward[outcomes]
    return Episodes(
        observations=tables.observations[states.ravel()],
        actions=actions.ravel(),
        rewards=rewards.reshape(-1, len(taxi.objectives)),
        lengths=np.full(episodes, taxi.horizon),
        terminated=np.zeros(episodes, dtype=bool),
        truncated=np.ones(episodes, dtype=bool),
        objectives=taxi.objectives,
    )


def _draw(probability: Float[np.ndarray, "n k"], rng: np.random.Generator) -> Int[np.ndarray, " n"]:
    """One outcome per row, by its probability."""
    if probability.shape[1] == 1:  # so that nothing is drawn where nothing is left to chance
        return np.zeros(len(probability), dtype=np.int64)
    cumulative = np.cumsum(probability, axis=1)
    return np.argmax(cumulative > rng.random(len(cumulative))[:, None] * cumulative[:, -1:], axis=1)
