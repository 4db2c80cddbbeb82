"""What the data says about how AETDICE should learn from it: over how many steps, and from which parts.

With deterministic transitions and one initial state, every way through the recorded augmented states
ends with a recorded return. So no choice between them can beat the best mixture of recorded episodes,
and weighing whole episodes (n = H) attains that without the errors of a learned ν. What can beat it is
to join parts of episodes where they are in the same state: `stitching` looks for such. Where transitions
are stochastic whole episodes would be chosen for their luck, and the dual of single steps is right.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from aetdice.algorithms import Algorithm
from aetdice.algorithms.episode_weighting import episode_weighting
from aetdice.config import TrainingConfig
from aetdice.data import Episodes
from aetdice.data.noise import chance_share
from aetdice.learning.stitching import stitch
from aetdice.objectives import Objective

MOST_CHANCE = 0.02
"""Of what a step does; with more, transitions count as stochastic."""
ONE_START = 0.1
"""Initial states count as one if they are spread by less than this, relative to all states."""
SEED = 0


class Choice(NamedTuple):
    """How to learn from a dataset."""

    algorithm: Algorithm
    stitches: bool
    """Whether to look for parts to join."""


def choose(dataset: Episodes, dice: Algorithm, horizon: int, config: TrainingConfig) -> Choice:
    """Whole episodes where nothing is left to chance, otherwise the dual of single steps."""
    if has_one_start(dataset) and chance_share(dataset) <= MOST_CHANCE:
        return Choice(episode_weighting(horizon, config), stitches=True)
    return Choice(dice, stitches=False)


def with_stitched(dataset: Episodes, objectives: Sequence[Objective], horizon: int) -> Episodes:
    """The dataset and, where they are better than what was recorded, episodes joined from its parts."""
    joined = stitch(dataset, objectives, horizon, SEED)
    return dataset if joined is None else Episodes.joined([dataset, joined])


def has_one_start(dataset: Episodes) -> bool:
    """Whether all episodes begin in the same state, but for small noise."""
    frames = dataset.observations.reshape(len(dataset.observations), -1)
    first = frames[dataset.starts + np.arange(len(dataset))]
    spread = frames.std(axis=0)
    return bool(np.all(first.std(axis=0) <= ONE_START * np.where(spread > 0, spread, 1.0)))
