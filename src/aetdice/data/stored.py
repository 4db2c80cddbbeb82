"""Augmented steps that stay on disk: what `to_device` computes of all steps, of the rows asked for."""

import math
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Shaped

from aetdice.data.augmentation import accrued_at_frames, censoring_weights, check_horizon
from aetdice.data.device import DeviceData, Recorded
from aetdice.data.episodes import Episodes
from aetdice.data.mapping import gather, mapped, release, temporary

STREAMED_BYTES = 1 << 30
"""Stores above this size stay on disk, unless told otherwise."""
BLOCK = 1 << 14
"""Steps of which a pass over all looks at together."""


class StoredSteps:
    """The steps of episodes whose arrays are mapped from files.

    The accrued reward, which no step knows of itself, is computed once and kept in a temporary file.
    """

    def __init__(self, episodes: Episodes, horizon: int, actions: int) -> None:
        episodes = episodes.settled()
        check_horizon(episodes, horizon)
        self.episodes, self.horizon, self.actions = episodes, horizon, actions
        self.weights = censoring_weights(episodes, horizon).astype(np.float32)
        self.accrued = temporary((episodes.steps + len(episodes), episodes.rewards.shape[1]), np.float32)
        for first, after in episodes.runs():
            start, end = episodes.starts[first], episodes.starts[after - 1] + episodes.lengths[after - 1]
            self.accrued[start + first : end + after] = accrued_at_frames(
                episodes.rewards[start:end], episodes.lengths[first:after]
            )
            release(self.accrued)
            release(episodes.rewards)

    @property
    def count(self) -> int:
        return self.episodes.steps

    @property
    def initial(self) -> Int[np.ndarray, " episodes"]:
        """The rows of the episodes' first steps."""
        return self.episodes.starts

    @property
    def breaks(self) -> bool:
        """Whether some episode stops where something would follow."""
        episodes = self.episodes
        return bool(np.any(~episodes.terminated & (episodes.lengths < self.horizon)))

    def index(self) -> DeviceData:
        """As much of the data as drawing rows takes: how many there are, and which are first."""
        return DeviceData(
            self.take(np.zeros(0, int)),
            jnp.asarray(self.initial, jnp.int32),
            self.actions,
            self.breaks,
            self.count,
            self.count,
        )

    def weight(self, part: slice) -> Float[np.ndarray, " r"]:
        """d^D of consecutive steps."""
        return self.weights[self.time(np.arange(part.start, part.stop))]

    def behaviour(self) -> Float[np.ndarray, " steps"]:
        """d^D of all steps, in a temporary file."""
        found = temporary((self.count,), np.float32)
        for part in self.parts():
            found[part] = self.weight(part)
            release(found)
        return found

    def parts(self, size: int = 1 << 20) -> list[slice]:
        """All rows, in runs that arrays of a few numbers per step are looked at in."""
        return [slice(first, min(first + size, self.count)) for first in range(0, self.count, size)]

    def time(self, rows: Int[np.ndarray, " r"]) -> Int[np.ndarray, " r"]:
        return rows - self.initial[self._episode(rows)]

    def take(self, rows: Int[np.ndarray, " r"]) -> Recorded:
        """Rows in rising order, on the device."""
        episodes, episode = self.episodes, self._episode(rows)
        time, frames = rows - episodes.starts[episode], rows + episode
        last = time + 1 == episodes.lengths[episode]
        terminated = last & episodes.terminated[episode]
        both = np.repeat(frames, 2) + np.tile([0, 1], len(frames))
        observations = gather(episodes.observations, both)
        return Recorded(
            observation=_compact(observations.reshape(len(both), math.prod(observations.shape[1:]))),
            accrued=_compact(gather(self.accrued, both)),
            frame=_compact(2 * np.arange(len(rows))),
            time=_compact(time),
            action=_compact(gather(episodes.actions, rows)),
            terminated=jax.device_put(terminated),
            bootstraps=jax.device_put(~terminated & (time + 1 < self.horizon)),
            weight=_compact(self.weights[time]),
        )

    def blocks(self) -> Iterator[tuple[slice, Recorded]]:
        """All steps in order, a block at a time."""
        for part in self.parts(BLOCK):
            yield part, self.take(np.arange(part.start, part.stop))

    def starts(self) -> Iterator[Recorded]:
        """The first steps of all episodes, a block at a time."""
        for first in range(0, len(self.initial), BLOCK):
            yield self.take(self.initial[first : first + BLOCK])

    def _episode(self, rows: Int[np.ndarray, " r"]) -> Int[np.ndarray, " r"]:
        return np.searchsorted(self.episodes.starts, rows, side="right") - 1


def is_mapped(episodes: Episodes) -> bool:
    """Whether the large arrays are mapped from files."""
    return all(
        mapped(array) is not None for array in (episodes.observations, episodes.actions, episodes.rewards)
    )


def bytes_of(episodes: Episodes) -> int:
    return sum(array.nbytes for array in (episodes.observations, episodes.actions, episodes.rewards))


def _compact(values: Shaped[np.ndarray, "..."]) -> Array:
    integer = np.issubdtype(values.dtype, np.integer)
    return jax.device_put(np.ascontiguousarray(values, np.int32 if integer else np.float32))
