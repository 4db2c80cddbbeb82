"""A made-up behaviour policy: small, random, and with a card of one's choice."""

import itertools

import numpy as np

from aetdice.behaviours import Behaviour
from aetdice.envs.mujoco import BODIES

DETAILS = {"method": "made up", "steps": 0, "seed": 0}


def tiny_behaviour(body="halfcheetah", returns=None, scale=1.0, seed=0):
    """By default, preference w earns 1000 w: its normalised returns are the whole simplex."""
    found, rng = BODIES[body], np.random.default_rng(seed)
    sizes = (found.observation_size + len(found.objectives), 8, found.action_size)
    first = np.linspace(1, 0, 11 if returns is None else len(returns))
    preferences = np.stack([first, 1 - first], axis=1)
    return Behaviour(
        body=body,
        weights=tuple(
            (scale * rng.standard_normal(fan)).astype(np.float32) for fan in itertools.pairwise(sizes)
        ),
        biases=tuple(np.zeros(size, np.float32) for size in sizes[1:]),
        centre=np.zeros(found.observation_size, np.float32),
        spread=np.ones(found.observation_size, np.float32),
        std=np.full(found.action_size, 0.5, np.float32),
        preferences=preferences,
        returns=1000 * preferences if returns is None else np.array(returns, dtype=np.float64),
        upright=np.ones(len(first)),
        details=dict(DETAILS),
    )
