"""The Fair-Taxi dataset: linear-optimal policies alternated inside the episode, with exploration."""

import itertools

import numpy as np
from jaxtyping import Float, Int

from aetdice.data import Episodes
from aetdice.envs.fair_taxi.taxi import FairTaxi
from aetdice.errors import InputError

EPISODES = 2000
RESOLUTION = 4
"""Weights are all multiples of 1/4 on the simplex, in units of a delivery."""
INTERVALS = (10, 25, 50)
"""Steps between changes of policy; each episode keeps one of them."""
EXPLORATION = (0.0, 0.05, 0.1, 0.2, 0.4)
"""Probability of a random action; each episode keeps one of them."""
DISCOUNT = 0.97


def collect_fair_taxi(taxi: FairTaxi, episodes: int = EPISODES, seed: int = 0) -> Episodes:
    """Episodes in which tabular Q policies for several linear weights take turns.

    Every interval a policy is drawn anew; equal seeds give equal datasets.
    """
    if episodes < 1:
        raise InputError(f"at least one episode is needed, not {episodes}")
    next_state, reward, _, observations = taxi.tables()
    policies = _greedy_policies(taxi, next_state, reward)
    rng = np.random.default_rng(seed)
    interval, exploration = rng.choice(INTERVALS, episodes), rng.choice(EXPLORATION, episodes)
    chosen = np.zeros(episodes, dtype=np.int64)
    states = np.full((episodes, taxi.horizon + 1), taxi.initial_state)
    actions = np.zeros((episodes, taxi.horizon), dtype=np.int64)
    for t in range(taxi.horizon):
        fresh = rng.integers(len(policies), size=episodes)
        chosen = np.where(t % interval == 0, fresh, chosen)
        explores = rng.random(episodes) < exploration
        random = rng.integers(taxi.actions, size=episodes)
        actions[:, t] = np.where(explores, random, policies[chosen, states[:, t]])
        states[:, t + 1] = next_state[states[:, t], actions[:, t]]
    return Episodes(
        observations=observations[states.ravel()],
        actions=actions.ravel(),
        rewards=reward[states[:, :-1].ravel(), actions.ravel()],
        lengths=np.full(episodes, taxi.horizon),
        terminated=np.zeros(episodes, dtype=bool),
        truncated=np.ones(episodes, dtype=bool),
        objectives=taxi.objectives,
    )


def _greedy_policies(
    taxi: FairTaxi, next_state: Int[np.ndarray, "s a"], reward: Float[np.ndarray, "s a m"]
) -> Int[np.ndarray, "policies s"]:
    """The best action of every state for every weight vector, by value iteration."""
    groups = len(taxi.origins)
    corners = itertools.product(range(RESOLUTION + 1), repeat=groups)
    shares = np.array([c for c in corners if sum(c) == RESOLUTION]) / RESOLUTION
    worth = np.abs(np.array(taxi.deliveries)) / taxi.scale
    weights = shares / np.where(worth > 0, worth, 1)
    scalar = np.einsum("sam,pm->psa", reward, weights)
    quality = np.zeros_like(scalar)
    for _ in range(4 * taxi.horizon):
        quality = scalar + DISCOUNT * quality.max(axis=2)[:, next_state]
    return quality.argmax(axis=2)
