"""What a policy earns for each of many preferences."""

import numpy as np
from jaxtyping import Float

from aetdice.behaviours.behaviour import Behaviour
from aetdice.envs.mujoco import BatchedBody

AT_ONCE = 512


def preference_grid(count: int, objectives: int = 2) -> Float[np.ndarray, "k m"]:
    """Equally spaced, from pure first to pure last objective; with three or more, along the edges."""
    ends = np.linspace(0, objectives - 1, count)
    corners = np.arange(objectives)
    return np.maximum(0, 1 - np.abs(ends[:, None] - corners))


def measure(
    behaviour: Behaviour,
    preferences: Float[np.ndarray, "k m"],
    episodes: int,
    seed: int = 0,
    threads: int | None = None,
) -> tuple[Float[np.ndarray, "k m"], Float[np.ndarray, " k"]]:
    """Mean returns of deterministic episodes for each preference, and the share that ended upright."""
    batch = BatchedBody(behaviour.body, threads=threads)
    rows = np.repeat(preferences, episodes, axis=0)
    returns, upright = np.zeros((len(rows), preferences.shape[1])), np.zeros(len(rows), dtype=bool)
    for number, start in enumerate(range(0, len(rows), AT_ONCE)):
        part = slice(start, min(start + AT_ONCE, len(rows)))
        observations = batch.reset(part.stop - start, seed + number)
        for _ in range(batch.horizon):
            actions = behaviour.act(observations, rows[part])
            observations, rewards, terminated = batch.step(actions)
            returns[part] += rewards
        upright[part] = ~terminated
    shape = (len(preferences), episodes)
    return returns.reshape(*shape, -1).mean(axis=1), upright.reshape(shape).mean(axis=1)
