"""Reward transforms of datasets.

The transforms are the runner's, so a dataset is transformed by the code that serves a policy without JAX.
"""

from dataclasses import replace

import numpy as np

from aetdice.data.episodes import Episodes
from aetdice_runner.transforms import (
    TRANSFORMS,
    Chain,
    MinMax,
    Safety,
    Scaling,
    SpeedAndEffort,
    Transform,
    WithoutBonus,
    transform_from,
)

__all__ = [
    "TRANSFORMS",
    "Chain",
    "MinMax",
    "Safety",
    "Scaling",
    "SpeedAndEffort",
    "Transform",
    "WithoutBonus",
    "transform_episodes",
    "transform_from",
]


def transform_episodes(episodes: Episodes, transform: Transform) -> Episodes:
    """The same episodes with transformed rewards."""
    frames = np.arange(episodes.steps) + np.repeat(np.arange(len(episodes)), episodes.lengths)
    rewards = transform(episodes.rewards, episodes.observations[frames + 1])
    return replace(episodes, rewards=rewards, objectives=transform.names(episodes.objectives))
