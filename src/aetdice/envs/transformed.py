"""A batched environment whose rewards are transformed as those of a dataset were."""

import numpy as np
from jaxtyping import Bool, Float, Shaped

from aetdice.data import Transform
from aetdice.envs.batched import BatchedEnvironment


class TransformedBatch:
    """Another `BatchedEnvironment`, its rewards transformed; nothing is earned after an episode's end."""

    def __init__(self, env: BatchedEnvironment, transform: Transform) -> None:
        self.env, self.transform = env, transform
        self.horizon, self.objectives = env.horizon, transform.names(env.objectives)
        self._ended = np.zeros(0, dtype=bool)

    def reset(self, count: int, seed: int) -> Shaped[np.ndarray, "count o"]:
        self._ended = np.zeros(count, dtype=bool)
        return self.env.reset(count, seed)

    def step(
        self, actions: Shaped[np.ndarray, "count *a"]
    ) -> tuple[Shaped[np.ndarray, "count o"], Float[np.ndarray, "count m"], Bool[np.ndarray, " count"]]:
        observations, raw, terminated = self.env.step(actions)
        rewards = self.transform(raw, observations)
        rewards[self._ended] = 0
        self._ended = terminated
        return observations, rewards, terminated
