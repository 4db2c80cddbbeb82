"""The environments under Gymnasium's interface; needs the extra `aetdice[gym]`."""

from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from jaxtyping import Float, Shaped

from aetdice.envs import ENVIRONMENTS
from aetdice.envs.environment import Environment, FiniteEnvironment

RENDER_MODES = ("ansi", "rgb_array")


class GymnasiumEnvironment(gymnasium.Env[Any, Any]):
    """A JAX environment as a Gymnasium one with vector rewards, in MO-Gymnasium's manner.

    `reward_space` and `reward_dim` describe the reward vector; `environment` is the JAX
    environment inside. An episode is truncated at the environment's horizon.
    """

    def __init__(self, environment: Environment, render_mode: str | None = None) -> None:
        if render_mode not in (None, *RENDER_MODES):
            raise ValueError(f"unknown render mode {render_mode!r}; known: {', '.join(RENDER_MODES)}")
        self.environment, self.render_mode = environment, render_mode
        self.__doc__ = type(environment).__doc__
        self.metadata = {"render_modes": list(RENDER_MODES), "render_fps": 4}
        low, high = (bound.astype(np.float32) for bound in environment.reward_bounds)
        self.reward_space = spaces.Box(low, high, dtype=np.float32)
        self.reward_dim = len(environment.objectives)
        self.utility_threshold = environment.utility_threshold
        self.action_space = spaces.Discrete(environment.actions)
        self.observation_space = _observation_space(environment)
        self._step = jax.jit(environment.step)
        self._observe = jax.jit(environment.observe)
        self._path: list[Any] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Shaped[np.ndarray, " o"], dict[str, Any]]:
        super().reset(seed=seed)
        del options
        self._path = [self.environment.reset(self._key())]
        return self._observation(), {}

    def step(
        self, action: Any
    ) -> tuple[Shaped[np.ndarray, " o"], Float[np.ndarray, " m"], bool, bool, dict[str, Any]]:
        if not self.action_space.contains(action):
            raise ValueError(f"action {action!r} is not one of 0 … {self.environment.actions - 1}")
        if not self._path:
            raise RuntimeError("call reset before step")
        state, reward, terminated = self._step(self._key(), self._path[-1], jnp.asarray(action))
        self._path.append(state)
        truncated = len(self._path) > self.environment.horizon and not bool(terminated)
        return self._observation(), np.asarray(reward, np.float32), bool(terminated), truncated, {}

    def render(self) -> Any:
        if not self._path:
            raise RuntimeError("call reset before render")
        if self.render_mode == "ansi":
            return self.environment.text(self._path[-1])
        if self.render_mode == "rgb_array":
            return self.environment.picture(self._path[-1], self._path)
        return None

    def _observation(self) -> Shaped[np.ndarray, " o"]:
        return np.asarray(self._observe(self._path[-1]), self.observation_space.dtype)

    def _key(self) -> Any:
        return jax.random.key(int(self.np_random.integers(2**31)))


def make_environment(name: str, render_mode: str | None = None, **arguments: Any) -> GymnasiumEnvironment:
    """The entry point of every id: the arguments go to the JAX environment."""
    return GymnasiumEnvironment(ENVIRONMENTS[name](**arguments), render_mode)


def _observation_space(environment: Environment) -> spaces.Space[Any]:
    if isinstance(environment, FiniteEnvironment):
        return spaces.MultiDiscrete(list(environment.observation_sizes), dtype=np.int32)
    low, high = (bound.astype(np.float32) for bound in environment.observation_bounds)
    return spaces.Box(low, high, dtype=np.float32)
