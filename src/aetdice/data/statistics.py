"""Facts about a whole dataset, gathered block by block in float64."""

import numpy as np
from jaxtyping import Float, Shaped

from aetdice.data.augmentation import accrued_at_frames
from aetdice.data.episodes import Episodes
from aetdice.data.mapping import release, row_blocks


def moments(
    frames: Shaped[np.ndarray, "frames o"],
) -> tuple[Float[np.ndarray, " o"], Float[np.ndarray, " o"]]:
    """Mean and standard deviation of every column, about the common mean (Chan et al.)."""
    count, mean, deviation = 0, np.zeros(frames.shape[1]), np.zeros(frames.shape[1])
    for _, rows in row_blocks(frames):
        block = rows.astype(np.float64)
        own = block.mean(axis=0)
        deviation += ((block - own) ** 2).sum(axis=0)
        deviation += (own - mean) ** 2 * count * len(rows) / (count + len(rows))
        count += len(rows)
        mean += (own - mean) * len(rows) / count
    return mean, np.sqrt(deviation / count)


def extremes(
    values: Shaped[np.ndarray, "rows *s"],
) -> tuple[Shaped[np.ndarray, "*s"], Shaped[np.ndarray, "*s"]]:
    """The least and the largest entry of every column."""
    lows, highs = zip(*((rows.min(axis=0), rows.max(axis=0)) for _, rows in row_blocks(values)), strict=True)
    return np.asarray(np.min(lows, axis=0)), np.asarray(np.max(highs, axis=0))


def largest_accrued(episodes: Episodes) -> Float[np.ndarray, " m"]:
    """max |R_acc| of every objective."""
    found = np.zeros(episodes.rewards.shape[1])
    for first, after in episodes.runs():
        start = int(episodes.starts[first])
        end = int(episodes.starts[after - 1] + episodes.lengths[after - 1])
        accrued = accrued_at_frames(episodes.rewards[start:end], episodes.lengths[first:after])
        found = np.maximum(found, np.abs(accrued).max(axis=0))
        release(episodes.rewards)
    return found
