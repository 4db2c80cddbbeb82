"""What a pure-JAX environment is: functions of keys and states, nothing stored."""

import abc
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from aetdice.objectives import in_float64


class Environment(eqx.Module):
    """A finite-horizon MOMDP whose `reset` and `step` can run inside `jit`, `vmap` and `scan`.

    The horizon is kept by whoever steps: an environment only says whether it terminated.
    """

    @property
    @abc.abstractmethod
    def horizon(self) -> int:
        """After how many steps an episode is over at the latest."""

    @property
    @abc.abstractmethod
    def objectives(self) -> tuple[str, ...]:
        """The names of the reward's entries."""

    @property
    @abc.abstractmethod
    def actions(self) -> int:
        """How many actions there are."""

    @property
    def utility_threshold(self) -> float:
        """Below which return logarithms and powers in F are continued, unless an objective says otherwise."""
        return 1.0

    @abc.abstractmethod
    def reset(self, key: PRNGKeyArray) -> Any:
        """An initial state."""

    @abc.abstractmethod
    def step(
        self, key: PRNGKeyArray, state: Any, action: Int[Array, ""]
    ) -> tuple[Any, Float[Array, " m"], Bool[Array, ""]]:
        """The next state, the reward vector, and whether the episode terminated."""

    @abc.abstractmethod
    def observe(self, state: Any) -> Array:
        """What a policy sees of a state."""

    @property
    @abc.abstractmethod
    def observation_bounds(self) -> tuple[Float[np.ndarray, " o"], Float[np.ndarray, " o"]]:
        """The smallest and the largest value of each entry of an observation."""

    @property
    @abc.abstractmethod
    def reward_bounds(self) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        """The smallest and the largest reward of one step, per objective."""

    @abc.abstractmethod
    def text(self, state: Any) -> str:
        """The state drawn in characters."""

    @abc.abstractmethod
    def picture(self, state: Any, path: Sequence[Any] = ()) -> np.ndarray:
        """The state drawn in pixels: (height, width, 3), uint8.

        `path` holds the episode's states so far, for an environment that shows its way.
        """


class Tables(NamedTuple):
    """Every state and action of a finite environment, stepped once, in float64."""

    next_state: Int[np.ndarray, "s a"]
    reward: Float[np.ndarray, "s a m"]
    ends: Bool[np.ndarray, "s a"]
    observations: Int[np.ndarray, "s o"]


class FiniteEnvironment(Environment):
    """A deterministic environment with numbered states, so that exact solvers can tabulate it."""

    @property
    @abc.abstractmethod
    def states(self) -> int:
        """How many states there are."""

    @property
    @abc.abstractmethod
    def observation_sizes(self) -> tuple[int, ...]:
        """How many values each entry of an observation can take, counted from 0."""

    @property
    @abc.abstractmethod
    def initial_state(self) -> int:
        """Where every episode starts."""

    @abc.abstractmethod
    def transition(
        self, state: Int[Array, ""], action: Int[Array, ""]
    ) -> tuple[Int[Array, ""], Float[Array, " m"], Bool[Array, ""]]:
        """The next state, the reward vector, and whether the episode terminated."""

    @property
    def observation_bounds(self) -> tuple[Float[np.ndarray, " o"], Float[np.ndarray, " o"]]:
        high = np.array(self.observation_sizes, dtype=float) - 1
        return np.zeros_like(high), high

    def reset(self, key: PRNGKeyArray) -> Int[Array, ""]:
        del key
        return jnp.asarray(self.initial_state)

    def step(
        self, key: PRNGKeyArray, state: Int[Array, ""], action: Int[Array, ""]
    ) -> tuple[Int[Array, ""], Float[Array, " m"], Bool[Array, ""]]:
        del key
        return self.transition(state, action)

    def tables(self) -> Tables:
        """The whole environment as arrays."""
        return Tables(*in_float64(_tabulate)(self))


def _tabulate(env: FiniteEnvironment) -> tuple[Array, Array, Array, Array]:
    states, actions = jnp.arange(env.states), jnp.arange(env.actions)
    step = jax.vmap(jax.vmap(env.transition, (None, 0)), (0, None))
    return *step(states, actions), jax.vmap(env.observe)(states)
