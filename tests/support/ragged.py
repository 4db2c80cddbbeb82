"""Episodes of different lengths in continuous states, and some ν: nothing about it is right."""

import jax
import numpy as np

from aetdice import Episode, Episodes
from aetdice.data import augment
from aetdice.data.device import DeviceData, to_device, with_segments
from aetdice.data.segments import augment_segments
from aetdice.networks import Encoder, Nu
from aetdice.objectives import Identity

HORIZON = 5
KEY = jax.random.key(0)


def ragged(*, cut: bool, n_step: int = 1) -> DeviceData:
    """The episodes below as the learner has them, with n-step transitions beside the steps."""
    episodes = ragged_episodes(cut=cut)
    steps = to_device(augment(episodes, Identity(), HORIZON), actions=3)
    if n_step == 1:
        return steps
    return with_segments(steps, *augment_segments(episodes, Identity(), n_step, HORIZON))


def ragged_episodes(*, cut: bool) -> Episodes:
    """Episodes that terminate early or last to the horizon; where `cut`, one more stops before either.

    All start at the same state, and meet nowhere else.
    """
    rng = np.random.default_rng(0)
    ends = [(3, True), (HORIZON, False), (1, True), (HORIZON, False), (HORIZON, True), *[(2, False)] * cut]
    episodes = [
        Episode(
            np.concatenate([np.zeros((1, 2)), rng.normal(size=(length, 2))]),
            rng.integers(0, 3, length),
            rng.random((length, 2)),
            end,
            not end,
        )
        for length, end in ends
    ]
    return Episodes.from_list(episodes)


def some_nu() -> Nu:
    encoder = Encoder(None, HORIZON, True, True, np.zeros(2), np.ones(2), np.ones(2), 0, 8)
    blank = Nu(encoder, (8,), 1, HORIZON, KEY)
    return jax.tree.map(lambda leaf: leaf + 0.3 * jax.random.normal(KEY, leaf.shape), blank)
