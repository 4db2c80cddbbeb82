"""Environments stepped in batches outside JAX: physics engines, and anything under Gymnasium."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Shaped

from aetdice.envs.pixels import Image
from aetdice.errors import InputError

if TYPE_CHECKING:
    import gymnasium


@runtime_checkable
class BatchedEnvironment(Protocol):
    """Several episodes of one environment, stepped together.

    It keeps the states of the episodes. An episode that has terminated stays where it is: its
    observation is repeated, its reward is zero and `terminated` stays true. The horizon is kept
    by whoever steps. It may also say its `action_shape`, () for discrete actions, against policies
    that have others, and its `utility_threshold`, as an `Environment` does; `picture()` draws its
    first episode.
    """

    @property
    def horizon(self) -> int:
        """After how many steps an episode is over at the latest."""

    @property
    def objectives(self) -> tuple[str, ...]:
        """The names of the reward's entries."""

    def reset(self, count: int, seed: int) -> Shaped[np.ndarray, "count o"]:
        """The first observations of new episodes; episode i depends on the seed and on i only."""

    def step(
        self, actions: Shaped[np.ndarray, "count *a"]
    ) -> tuple[Shaped[np.ndarray, "count o"], Float[np.ndarray, "count m"], Bool[np.ndarray, " count"]]:
        """The observations, reward vectors and terminations that follow one action each."""


class GymnasiumBatch:
    """Ordinary Gymnasium environments with vector rewards as one batched environment.

    One environment per episode, made when first needed and stepped in turn. The horizon is
    `horizon`, or the time limit of the environment's registration.
    """

    def __init__(
        self,
        make: "Callable[[], gymnasium.Env[Any, Any]]",
        objectives: Sequence[str] | None = None,
        horizon: int | None = None,
    ) -> None:
        self._make = make
        self._environments = [make()]
        first = self._environments[0]
        size = _reward_size(first)
        self.objectives = tuple(objectives or (f"r{i}" for i in range(size)))
        if len(self.objectives) != size:
            raise InputError(f"the environment has {size} objectives, but {len(self.objectives)} names")
        self.horizon = _horizon(first, horizon)
        self.action_shape = first.action_space.shape
        self.utility_threshold = float(getattr(first.unwrapped, "utility_threshold", 1.0))
        self._observations = np.zeros((0, 0))
        self._ended = np.zeros(0, dtype=bool)
        self._time = 0

    def reset(self, count: int, seed: int) -> Shaped[np.ndarray, "count o"]:
        check_count(count)
        while len(self._environments) < count:
            self._environments.append(self._make())
        seeds = np.random.SeedSequence(seed).generate_state(count)
        self._observations = np.stack(
            [
                np.asarray(env.reset(seed=int(own))[0]).reshape(-1)
                for env, own in zip(self._environments, seeds, strict=False)
            ]
        )
        self._ended, self._time = np.zeros(count, dtype=bool), 0
        return self._observations.copy()

    def step(
        self, actions: Shaped[np.ndarray, "count *a"]
    ) -> tuple[Shaped[np.ndarray, "count o"], Float[np.ndarray, "count m"], Bool[np.ndarray, " count"]]:
        check_actions(len(self._ended), actions)
        rewards = np.zeros((len(self._ended), len(self.objectives)))
        self._time += 1
        for i in np.flatnonzero(~self._ended):
            observation, reward, terminated, truncated, _ = self._environments[i].step(actions[i])
            self._observations[i] = np.asarray(observation).reshape(-1)
            rewards[i] = reward
            self._ended[i] = terminated
            if truncated and not terminated and self._time < self.horizon:
                raise InputError(
                    f"the environment stops after {self._time} steps, before the horizon of "
                    f"{self.horizon}; pass horizon={self._time}"
                )
        return self._observations.copy(), rewards, self._ended.copy()

    def picture(self) -> Image:
        """What the first environment renders."""
        drawn = self._environments[0].render()
        if not isinstance(drawn, np.ndarray):
            raise InputError('make the environments with render_mode="rgb_array" to draw them')
        return drawn


def check_count(count: int) -> None:
    if count < 1:
        raise InputError(f"at least one episode is needed, not {count}")


def check_actions(count: int, actions: Shaped[np.ndarray, "rows *a"]) -> None:
    """As many actions as episodes."""
    if count == 0:
        raise RuntimeError("call reset before step")
    if len(actions) != count:
        raise InputError(f"{count} episodes need {count} actions, not {len(actions)}")


def _reward_size(env: "gymnasium.Env[Any, Any]") -> int:
    space = getattr(env.unwrapped, "reward_space", None)
    if space is None or len(space.shape) != 1:
        raise InputError(
            "the environment has no vector reward: `reward_space` must be a box of shape (objectives,)"
        )
    return int(space.shape[0])


def _horizon(env: "gymnasium.Env[Any, Any]", horizon: int | None) -> int:
    if horizon is None and env.spec is not None:
        horizon = env.spec.max_episode_steps
    if horizon is None:
        raise InputError("the environment has no time limit; pass the horizon")
    if horizon < 1:
        raise InputError(f"the horizon must be at least 1, not {horizon}")
    return horizon
