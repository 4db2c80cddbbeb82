"""Rollouts without pause: every episode that ends makes room for a new one."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from aetdice.behaviours.recipe import Recipe, draw_preferences
from aetdice.envs.mujoco import BatchedBody

Act = Callable[
    [Float[np.ndarray, "n o"], Float[np.ndarray, "n m"], Float[np.ndarray, "n a"]],
    tuple[Float[np.ndarray, "n a"], Float[np.ndarray, " n"]],
]
"""Observations, preferences and noise to actions (in units of their limits) and log-probabilities."""


@dataclass
class RunningEpisodes:
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
class Experience:
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


def begin(batch: BatchedBody, recipe: Recipe, rng: np.random.Generator) -> RunningEpisodes:
    count, objectives = recipe.environments, len(batch.objectives)
    positions, velocities = batch.body.starts(batch.model.qpos0, rng, count, batch.noise)
    return RunningEpisodes(
        positions=positions,
        velocities=velocities,
        preferences=draw_preferences(rng, count, objectives, recipe.width(0), recipe.corners),
        remaining=rng.integers(1, batch.horizon + 1, count),
        discounted=np.zeros((count, objectives)),
        accrued=np.zeros((count, objectives)),
        whole=np.zeros(count, dtype=bool),
    )


def collect(
    batch: BatchedBody,
    running: RunningEpisodes,
    act: Act,
    recipe: Recipe,
    width: float,
    rng: np.random.Generator,
) -> Experience:
    """Step every environment `span` times; `running` is where they are afterwards."""
    body, n, m, span = batch.body, recipe.environments, len(batch.objectives), recipe.span
    limits = np.array(body.action_limits)
    noise = rng.standard_normal((span, n, body.action_size), dtype=np.float32)
    found = Experience(
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
    returns, upright = [found.returns], [found.upright]
    observations = batch.reset_to(running.positions, running.velocities)
    for t in range(span):
        found.observations[t], found.preferences[t] = observations, running.preferences
        found.actions[t], found.log_probabilities[t] = act(
            found.observations[t], found.preferences[t], noise[t]
        )
        observations, found.rewards[t], found.terminated[t] = batch.step(limits * found.actions[t])
        found.following[t] = observations
        running.remaining -= 1
        running.accrued += found.rewards[t]
        running.discounted = recipe.discount * running.discounted + found.rewards[t]
        found.discounted[t] = running.discounted
        found.ended[t] = found.terminated[t] | (running.remaining == 0)
        counted = found.ended[t] & running.whole
        returns.append(running.accrued[counted])
        upright.append(~found.terminated[t][counted])
        if found.ended[t].any():
            observations = _restart(batch, running, found.ended[t], (width, recipe.corners), rng)
    running.positions, running.velocities = batch.positions, batch.velocities
    found.returns, found.upright = np.concatenate(returns), np.concatenate(upright)
    return found


def _restart(
    batch: BatchedBody,
    running: RunningEpisodes,
    ended: Bool[np.ndarray, " n"],
    spread: tuple[float, float],
    rng: np.random.Generator,
) -> Float[np.ndarray, "n o"]:
    """New episodes where the old ones ended, with new preferences of some width and share of corners."""
    count = int(ended.sum())
    positions, velocities = batch.positions, batch.velocities
    positions[ended], velocities[ended] = batch.body.starts(batch.model.qpos0, rng, count, batch.noise)
    running.preferences[ended] = draw_preferences(rng, count, running.preferences.shape[1], *spread)
    running.remaining[ended], running.whole[ended] = batch.horizon, True
    running.accrued[ended], running.discounted[ended] = 0, 0
    return batch.reset_to(positions, velocities)
