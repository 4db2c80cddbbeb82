"""Bodies that walk without pause: every episode that ends makes room for a new one."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from aetdice.behaviours.recipe import Recipe, draw_preferences
from aetdice.envs.bodies import BatchedBody

Act = Callable[
    [Float[np.ndarray, "n o"], Float[np.ndarray, "n m"], Float[np.ndarray, "n a"]],
    tuple[Float[np.ndarray, "n a"], Float[np.ndarray, " n"]],
]
"""Observations, preferences and noise to actions (in units of their limits) and log-probabilities."""


@dataclass
class Walks:
    """The episodes under way, one per environment."""

    positions: Float[np.ndarray, "n q"]
    velocities: Float[np.ndarray, "n v"]
    preferences: Float[np.ndarray, "n m"]
    remaining: Int[np.ndarray, " n"]
    """Steps until the horizon; the first episodes begin at random times, so that ends spread."""
    discounted: Float[np.ndarray, "n m"]
    """Σ γ^k r of the steps so far, the latest undiscounted: what rewards are scaled by."""
    accrued: Float[np.ndarray, "n m"]
    whole: Bool[np.ndarray, " n"]
    """Whether the episode began at its beginning."""


@dataclass
class Trip:
    """What some steps brought: arrays with axes (span, n, …), and the episodes that ended."""

    observations: Float[np.ndarray, "span n o"]
    preferences: Float[np.ndarray, "span n m"]
    actions: Float[np.ndarray, "span n a"]
    log_probabilities: Float[np.ndarray, "span n"]
    rewards: Float[np.ndarray, "span n m"]
    following: Float[np.ndarray, "span n o"]
    terminated: Bool[np.ndarray, "span n"]
    ended: Bool[np.ndarray, "span n"]
    discounted: Float[np.ndarray, "span n m"]
    returns: Float[np.ndarray, "episodes m"]
    upright: Bool[np.ndarray, " episodes"]


def begin(batch: BatchedBody, recipe: Recipe, rng: np.random.Generator) -> Walks:
    count, objectives = recipe.environments, len(batch.objectives)
    positions, velocities = batch.body.starts(batch.model.qpos0, rng, count, batch.noise)
    return Walks(
        positions=positions,
        velocities=velocities,
        preferences=draw_preferences(rng, count, objectives, recipe.width(0), recipe.corners),
        remaining=rng.integers(1, batch.horizon + 1, count),
        discounted=np.zeros((count, objectives)),
        accrued=np.zeros((count, objectives)),
        whole=np.zeros(count, dtype=bool),
    )


def walk(
    batch: BatchedBody, walks: Walks, act: Act, recipe: Recipe, width: float, rng: np.random.Generator
) -> Trip:
    """Step every environment `span` times; `walks` is where they are afterwards."""
    body, n, m, span = batch.body, recipe.environments, len(batch.objectives), recipe.span
    limits = np.array(body.action_limits)
    noise = rng.standard_normal((span, n, body.action_size), dtype=np.float32)
    trip = Trip(
        observations=np.empty((span, n, body.observation_size), np.float32),
        preferences=np.empty((span, n, m), np.float32),
        actions=np.empty((span, n, body.action_size), np.float32),
        log_probabilities=np.empty((span, n), np.float32),
        rewards=np.empty((span, n, m)),
        following=np.empty((span, n, body.observation_size), np.float32),
        terminated=np.empty((span, n), bool),
        ended=np.empty((span, n), bool),
        discounted=np.empty((span, n, m)),
        returns=np.empty((0, m)),
        upright=np.empty(0, bool),
    )
    returns, upright = [trip.returns], [trip.upright]
    observations = batch.reset_to(walks.positions, walks.velocities)
    for t in range(span):
        trip.observations[t], trip.preferences[t] = observations, walks.preferences
        trip.actions[t], trip.log_probabilities[t] = act(trip.observations[t], trip.preferences[t], noise[t])
        observations, trip.rewards[t], trip.terminated[t] = batch.step(limits * trip.actions[t])
        trip.following[t] = observations
        walks.remaining -= 1
        walks.accrued += trip.rewards[t]
        walks.discounted = recipe.discount * walks.discounted + trip.rewards[t]
        trip.discounted[t] = walks.discounted
        trip.ended[t] = trip.terminated[t] | (walks.remaining == 0)
        counted = trip.ended[t] & walks.whole
        returns.append(walks.accrued[counted])
        upright.append(~trip.terminated[t][counted])
        if trip.ended[t].any():
            observations = _restart(batch, walks, trip.ended[t], (width, recipe.corners), rng)
    walks.positions, walks.velocities = batch.positions, batch.velocities
    trip.returns, trip.upright = np.concatenate(returns), np.concatenate(upright)
    return trip


def _restart(
    batch: BatchedBody,
    walks: Walks,
    ended: Bool[np.ndarray, " n"],
    spread: tuple[float, float],
    rng: np.random.Generator,
) -> Float[np.ndarray, "n o"]:
    """New episodes where the old ones ended, with new preferences of some width and share of corners."""
    count = int(ended.sum())
    positions, velocities = batch.positions, batch.velocities
    positions[ended], velocities[ended] = batch.body.starts(batch.model.qpos0, rng, count, batch.noise)
    walks.preferences[ended] = draw_preferences(rng, count, walks.preferences.shape[1], *spread)
    walks.remaining[ended], walks.whole[ended] = batch.horizon, True
    walks.accrued[ended], walks.discounted[ended] = 0, 0
    return batch.reset_to(positions, velocities)
