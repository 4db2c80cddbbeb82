"""Files in D4MORL's layout, made up on the fly."""

import pickle
from collections import defaultdict
from pathlib import Path

import numpy as np

from aetdice.envs.mujoco import Body


def trajectory(body: Body, steps: int, *, terminal: bool = True, seed: int = 0) -> dict:
    """One trajectory as D4MORL's collector leaves it: a defaultdict of float64 arrays."""
    rng = np.random.default_rng(seed)
    observations = rng.normal(size=(steps + 1, body.observation_size))
    made = defaultdict(list)
    made["observations"] = observations[:-1].copy()
    made["actions"] = rng.uniform(-1, 1, (steps, body.action_size))
    made["next_observations"] = observations[1:].copy()
    made["preference"] = np.tile(rng.dirichlet(np.ones(2)), (steps, 1))
    made["terminals"] = np.arange(steps) == (steps - 1 if terminal else -1)
    made["raw_rewards"] = rng.normal(size=(steps, 2))
    return made


def write(path: Path, content: object, protocol: int = 4) -> Path:
    path.write_bytes(pickle.dumps(content, protocol=protocol))
    return path
