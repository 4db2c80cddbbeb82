"""Rollouts of MuJoCo bodies: who stays up, and where Ants go."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from aetdice.envs.mujoco.recorder import RecordedBody
from aetdice.envs.transformed import TransformedBatch
from aetdice.studies.study import SEED, Returns, Rollouts, rounded

UPRIGHT, STAY_UP = "upright at the end", "stay up"
DIRECTIONS = "where the Ant goes"
BEHAVIOURS = ("A", "B", "C", "other")
"""Of Ant: along x, along y, between them, anywhere else."""
NARROW = float(np.tan(np.pi / 6))
"""Within 30° of an axis."""
PATHS = 30
"""Episodes of each seed whose path is kept."""
STILL_EPISODES = 8


def rollouts_in(env: RecordedBody, sample: Callable[[], Returns]) -> Rollouts:
    """Sampled returns, and what was recorded of the episodes: who stays up, where Ants go, some paths."""
    env.forget()
    returns, seen = sample(), env.recording
    found = {UPRIGHT: {STAY_UP: float(seen.upright.mean())}}
    if env.body.body.name == "ant":
        found[DIRECTIONS] = directions(seen.ends)
    paths = [rounded(path) for path in seen.paths[:PATHS]]
    return Rollouts(returns, found, {"lengths": seen.lengths.tolist(), "paths": paths})


def behaviours_of(ends: Float[np.ndarray, "n 2"]) -> list[str]:
    """Where each Ant went: A along x, B along y (within 30°), C between them, or anywhere else."""
    x, y = ends.T
    along_x, along_y = (x > 0) & (np.abs(y) <= NARROW * x), (y > 0) & (np.abs(x) <= NARROW * y)
    between = (x > 0) & (y > 0)
    return [BEHAVIOURS[i] for i in np.select([along_x, along_y, between], [0, 1, 2], 3)]


def directions(ends: Float[np.ndarray, "n 2"]) -> dict[str, float]:
    """How often each behaviour is shown."""
    found = behaviours_of(ends)
    return {name: found.count(name) / len(found) for name in BEHAVIOURS}


def act_returns(env: TransformedBatch, act: Callable[[Any], Any]) -> Returns:
    """Returns of a function of the observation."""
    observations, returns = (
        env.reset(STILL_EPISODES, SEED),
        np.zeros((STILL_EPISODES, len(env.objectives))),
    )
    for _ in range(env.horizon):
        observations, rewards, _ = env.step(act(observations))
        returns += rewards
    return returns
