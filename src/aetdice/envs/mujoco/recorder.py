"""A recorder around a batched body: how long episodes stay up, and where they go."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from aetdice.envs.mujoco.stepper import BatchedBody

STRIDE = 10
"""Steps between the points of a path."""


class Recording(NamedTuple):
    """Some episodes. Places are the first two positions: x and y of Ant, x and height of the others."""

    lengths: Int[np.ndarray, " n"]
    upright: Bool[np.ndarray, " n"]
    """Whether the episode lasted to the horizon."""
    ends: Float[np.ndarray, "n 2"]
    paths: list[list[list[float]]]
    """Where each was every few steps while it lasted, and at its end."""


@dataclass
class _Batch:
    """Episodes that are stepped together."""

    lengths: Int[np.ndarray, " n"]
    ended: Bool[np.ndarray, " n"]
    places: list[Float[np.ndarray, "n 2"]] = field(default_factory=list)
    """One per step, and the start."""


class RecordedBody:
    """A batched body that records its episodes."""

    def __init__(self, body: str, horizon: int) -> None:
        self.body = BatchedBody(body, horizon=horizon)
        self.horizon, self.objectives = horizon, self.body.objectives
        self._batches: list[_Batch] = []

    def reset(self, count: int, seed: int) -> Shaped[np.ndarray, "count o"]:
        observations = self.body.reset(count, seed)
        self._batches.append(_Batch(np.zeros(count, dtype=int), np.zeros(count, dtype=bool)))
        self._batches[-1].places.append(self.body.positions[:, :2])
        return observations

    def step(
        self, actions: Shaped[np.ndarray, "count *a"]
    ) -> tuple[Shaped[np.ndarray, "count o"], Float[np.ndarray, "count m"], Bool[np.ndarray, " count"]]:
        observations, rewards, terminated = self.body.step(actions)
        now = self._batches[-1]
        now.lengths[~now.ended] += 1
        now.ended = terminated
        now.places.append(self.body.positions[:, :2])
        return observations, rewards, terminated

    def forget(self) -> None:
        """Begin a new recording."""
        self._batches = []

    @property
    def recording(self) -> Recording:
        """The episodes since the last time it was told to forget."""
        paths = []
        for batch in self._batches:
            places = np.stack(batch.places, axis=1)
            for path, length in zip(places, batch.lengths, strict=True):
                paths.append(path[[*range(0, length, STRIDE), length]].tolist())
        return Recording(
            lengths=np.concatenate([each.lengths for each in self._batches]),
            upright=~np.concatenate([each.ended for each in self._batches]),
            ends=np.concatenate([each.places[-1] for each in self._batches]),
            paths=paths,
        )
