"""One body under Gymnasium's interface: the batched stepper with a batch of one."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from jaxtyping import Float

from aetdice.envs.mujoco.body import NOISE, Body, find_body
from aetdice.envs.mujoco.stepper import BatchedBody


class BodyEnvironment(gymnasium.Env[Any, Any]):
    """A body with vector rewards, in MO-Gymnasium's manner; `body` says which.

    `info` carries MuJoCo's positions and velocities. An episode is truncated at the horizon.
    """

    def __init__(
        self,
        body: Body | str,
        *,
        noise: float = NOISE,
        horizon: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"unknown render mode {render_mode!r}; known: rgb_array")
        self._batch = BatchedBody(body, noise=noise, horizon=horizon, threads=1)
        self.body, self.horizon = self._batch.body, self._batch.horizon
        self.render_mode = render_mode
        self.__doc__ = self.body.page
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": round(1 / self._batch.duration)}
        low, high = (np.array(bound) for bound in self.body.reward_bounds)
        self.reward_space = spaces.Box(low, high, dtype=np.float64)
        self.reward_dim = len(self.body.objectives)
        limits = np.array(self.body.action_limits, dtype=np.float32)
        self.action_space = spaces.Box(-limits, limits, dtype=np.float32)
        self.observation_space = spaces.Box(-np.inf, np.inf, (self.body.observation_size,), np.float64)
        self._time: int | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float[np.ndarray, " o"], dict[str, Any]]:
        super().reset(seed=seed)
        del options
        self._time = 0
        return self._batch.reset_from(self.np_random, 1)[0], self._state()

    def step(
        self, action: Any
    ) -> tuple[Float[np.ndarray, " o"], Float[np.ndarray, " m"], bool, bool, dict[str, Any]]:
        if self._time is None:
            raise RuntimeError("call reset before step")
        observations, rewards, terminated = self._batch.step(np.asarray(action, dtype=np.float64)[None])
        self._time += 1
        ended = bool(terminated[0])
        truncated = self._time >= self.horizon and not ended
        return observations[0], rewards[0], ended, truncated, self._state()

    def render(self) -> Any:
        if self._time is None:
            raise RuntimeError("call reset before render")
        return self._batch.picture() if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        self._batch.close()

    def _state(self) -> dict[str, Any]:
        return {"positions": self._batch.positions[0], "velocities": self._batch.velocities[0]}


def make_body(name: str, render_mode: str | None = None, **arguments: Any) -> BodyEnvironment:
    """The entry point of every id."""
    return BodyEnvironment(find_body(name), render_mode=render_mode, **arguments)
