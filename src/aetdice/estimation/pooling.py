"""Whether what follows a state and action depends on the time, which a pooled model leaves out.

A shift that ends at a clock which no observation shows, or prices that rise by the hour: a model of states
and actions alone mixes early and late.
"""

import numpy as np
from jaxtyping import Float, Int
from scipy.special import ndtri

from aetdice.data import Episodes
from aetdice.data.successors import ending_steps, followed, frames_before, number_rows

ALARM = 1e-3
"""Chance of finding a dependence where there is none."""


def depends_on_time(episodes: Episodes) -> bool:
    """Whether rewards, ends or successors at some time are not those of their states and actions.

    Each of their numbers, less its mean over all steps with that state and action, sums to about 0 at every
    time (Bernstein's inequality, for all sums together).
    """
    flat = episodes.observations.reshape(len(episodes.observations), -1)
    before, known = frames_before(episodes), np.flatnonzero(followed(episodes))
    pair = number_rows(np.column_stack([flat[before], episodes.actions])[known])
    assert pair is not None
    effects = np.column_stack([episodes.rewards, ending_steps(episodes), flat[before + 1]])[known]
    time = (np.arange(episodes.steps) - np.repeat(episodes.starts, episodes.lengths))[known]
    counts = np.bincount(pair)
    apart = effects - _summed(pair, effects) / counts[pair][:, None]
    size = int(time.max()) + 1
    # A step has a share in its own mean, so residuals of few steps are too small.
    variance = _summed(pair, apart**2) / np.maximum(counts - 1, 1)[pair][:, None]
    sums, spread = (_by(time, size, values) for values in (apart, variance))
    largest = np.zeros_like(sums)
    np.maximum.at(largest, time, np.abs(apart))
    bound = -float(ndtri(ALARM / (2 * sums.size)))
    return bool(np.any(np.abs(sums) > bound * np.sqrt(spread) + bound**2 * largest / 3 + 1e-9))


def _summed(
    group: Int[np.ndarray, " rows"], values: Float[np.ndarray, "rows c"]
) -> Float[np.ndarray, "rows c"]:
    """The sum over a row's group."""
    return _by(group, int(group.max()) + 1, values)[group]


def _by(
    group: Int[np.ndarray, " rows"], size: int, values: Float[np.ndarray, "rows c"]
) -> Float[np.ndarray, "size c"]:
    """The sum over every group."""
    return np.stack([np.bincount(group, column, minlength=size) for column in values.T], axis=1)
