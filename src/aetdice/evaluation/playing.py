"""Episodes to look at: pictures of a policy's way, and what it had brought by then."""

import dataclasses
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int, Shaped

from aetdice.envs.batched import BatchedEnvironment
from aetdice.envs.environment import Environment
from aetdice.envs.pixels import Image
from aetdice.errors import InputError
from aetdice.evaluation.policy import Policy
from aetdice.evaluation.rollout import AnyEnvironment, check_fits


class Playback(NamedTuple):
    """Some moments of an episode, the first and the last among them."""

    times: Int[np.ndarray, " frames"]
    """Steps taken by then."""
    pictures: list[Image]
    accrued: Float[np.ndarray, "frames m"]
    """Of transformed rewards, where the policy knows no others."""


class _Stage(Protocol):
    """One episode of an environment, which can be drawn at any moment."""

    def reset(self, seed: int) -> Shaped[np.ndarray, " o"]: ...

    def step(self, action: Any) -> tuple[Shaped[np.ndarray, " o"], Float[np.ndarray, " m"], bool]: ...

    def picture(self) -> Image: ...


def play_episode(policy: Policy, env: AnyEnvironment, seed: int, every: int = 1) -> Playback:
    """One sampled episode, drawn at its start, `every` so many steps, and at its end."""
    check_fits(policy, env)
    stage: _Stage = _JaxStage(env) if isinstance(env, Environment) else _BatchedStage(env)
    chance, choice = (int(own) for own in np.random.SeedSequence(seed).generate_state(2))
    acting = dataclasses.replace(policy, coding=None).vectorised(1, seed=choice)  # environments speak numbers
    observation = stage.reset(chance)
    times, pictures, accrued = [0], [stage.picture()], [acting.accrued[0]]
    for time in range(1, env.horizon + 1):
        observation, reward, ended = stage.step(acting.act(observation[None])[0])
        acting.observe(reward[None], observation[None])
        last = ended or time == env.horizon
        if last or time % every == 0:
            times.append(time)
            pictures.append(stage.picture())
            accrued.append(acting.accrued[0])
        if last:
            break
    return Playback(np.array(times), pictures, np.array(accrued, float))


class _JaxStage:
    """A JAX environment; it remembers the episode's states."""

    def __init__(self, env: Environment) -> None:
        self.env, self._step, self._observe = env, jax.jit(env.step), jax.jit(env.observe)
        self.key, self.path = jax.random.key(0), list[Any]()

    def reset(self, seed: int) -> Shaped[np.ndarray, " o"]:
        self.key, first = jax.random.split(jax.random.key(seed))
        self.path = [self.env.reset(first)]
        return np.asarray(self._observe(self.path[-1]))

    def step(self, action: Any) -> tuple[Shaped[np.ndarray, " o"], Float[np.ndarray, " m"], bool]:
        self.key, now = jax.random.split(self.key)
        state, reward, ended = self._step(now, self.path[-1], jnp.asarray(action))
        self.path.append(state)
        return np.asarray(self._observe(state)), np.asarray(reward), bool(ended)

    def picture(self) -> Image:
        return self.env.picture(self.path[-1], self.path)


class _BatchedStage:
    """A batched environment with a batch of one."""

    def __init__(self, env: BatchedEnvironment) -> None:
        if not hasattr(env, "picture"):
            raise InputError(f"{type(env).__name__} has no picture(), which draws its first episode")
        self.env: Any = env

    def reset(self, seed: int) -> Shaped[np.ndarray, " o"]:
        return np.asarray(self.env.reset(1, seed)[0])

    def step(self, action: Any) -> tuple[Shaped[np.ndarray, " o"], Float[np.ndarray, " m"], bool]:
        observations, rewards, ended = self.env.step(np.asarray(action)[None])
        return observations[0], rewards[0], bool(ended[0])

    def picture(self) -> Image:
        return np.asarray(self.env.picture())
