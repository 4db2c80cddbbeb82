"""Policies watched while they walk: what they earn, how long they stay up, and where they go."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from aetdice.data import Transform
from aetdice.envs.mujoco import BatchedBody
from aetdice.envs.transformed import TransformedBatch
from aetdice.evaluation.rollout import sample_returns
from aetdice.networks import PolicyNetwork
from aetdice.studies.members import SEED

STRIDE = 10
"""Steps between the points of a way."""

Act = Callable[[Float[np.ndarray, "n o"]], Float[np.ndarray, "n a"]]


class Walked(NamedTuple):
    """Some episodes. Places are the first two positions: x and y of Ant, x and height of the others."""

    returns: Float[np.ndarray, "n m"]
    """As the policy accrues them: of transformed rewards."""
    lengths: Int[np.ndarray, " n"]
    upright: Bool[np.ndarray, " n"]
    """Whether the episode lasted to the horizon."""
    ends: Float[np.ndarray, "n 2"]
    ways: list[list[list[float]]]
    """Where each was every few steps while it lasted, and at its end."""


@dataclass
class _Round:
    """Episodes that are stepped together."""

    lengths: Int[np.ndarray, " n"]
    ended: Bool[np.ndarray, " n"]
    places: list[Float[np.ndarray, "n 2"]] = field(default_factory=list)
    """One per step, and the start."""


class WatchedBody:
    """A batched body with transformed rewards that remembers its episodes until told to forget."""

    def __init__(self, body: str, transform: Transform, horizon: int) -> None:
        self.body = BatchedBody(body, horizon=horizon)
        self._batch = TransformedBatch(self.body, transform)
        self.horizon, self.objectives = horizon, self._batch.objectives
        self._rounds: list[_Round] = []

    def reset(self, count: int, seed: int) -> Shaped[np.ndarray, "count o"]:
        observations = self._batch.reset(count, seed)
        self._rounds.append(_Round(np.zeros(count, dtype=int), np.zeros(count, dtype=bool)))
        self._rounds[-1].places.append(self.body.positions[:, :2])
        return observations

    def step(
        self, actions: Shaped[np.ndarray, "count *a"]
    ) -> tuple[Shaped[np.ndarray, "count o"], Float[np.ndarray, "count m"], Bool[np.ndarray, " count"]]:
        observations, rewards, terminated = self._batch.step(actions)
        now = self._rounds[-1]
        now.lengths[~now.ended] += 1
        now.ended = terminated
        now.places.append(self.body.positions[:, :2])
        return observations, rewards, terminated

    def play(self, policy: PolicyNetwork, episodes: int) -> Walked:
        """Sampled episodes of a policy."""
        self._rounds = []
        return self._walked(sample_returns(policy, self, episodes, SEED))

    def play_with(self, act: Act, episodes: int) -> Walked:
        """Episodes of a function of the observation."""
        self._rounds = []
        observations, returns = self.reset(episodes, SEED), np.zeros((episodes, len(self.objectives)))
        for _ in range(self.horizon):
            observations, rewards, _ = self.step(act(observations))
            returns += rewards
        return self._walked(returns)

    def _walked(self, returns: Float[np.ndarray, "n m"]) -> Walked:
        ways = []
        for round_ in self._rounds:
            places = np.stack(round_.places, axis=1)
            for way, length in zip(places, round_.lengths, strict=True):
                ways.append(way[[*range(0, length, STRIDE), length]].tolist())
        return Walked(
            returns=returns,
            lengths=np.concatenate([each.lengths for each in self._rounds]),
            upright=~np.concatenate([each.ended for each in self._rounds]),
            ends=np.concatenate([each.places[-1] for each in self._rounds]),
            ways=ways,
        )
