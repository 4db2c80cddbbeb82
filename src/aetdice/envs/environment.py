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


class Outcomes(NamedTuple):
    """All that may follow a state and an action, and how likely it is; K = 1 without chance."""

    probability: Float[Array, " k"]
    next_state: Int[Array, " k"]
    reward: Float[Array, "k m"]
    ends: Bool[Array, " k"]


class Tables(NamedTuple):
    """The outcomes of every state and action of a finite environment, in float64."""

    probability: Float[np.ndarray, "s a k"]
    next_state: Int[np.ndarray, "s a k"]
    reward: Float[np.ndarray, "s a k m"]
    ends: Bool[np.ndarray, "s a k"]
    observations: Int[np.ndarray, "s o"]


class FiniteEnvironment(Environment):
    """An environment with numbered states, so that exact solvers can tabulate it.

    Deterministic by its `transition`, unless `outcomes` says that other things may happen too.
    """

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
        """Where every episode starts, unless `initial` says otherwise."""

    @property
    def initial(self) -> Float[np.ndarray, " s"]:
        """How likely each state is the first one; `reset` draws it."""
        return np.eye(self.states)[self.initial_state]

    @abc.abstractmethod
    def transition(
        self, state: Int[Array, ""], action: Int[Array, ""]
    ) -> tuple[Int[Array, ""], Float[Array, " m"], Bool[Array, ""]]:
        """The next state, the reward vector, and whether the episode terminated, if the action succeeds."""

    def outcomes(self, state: Int[Array, ""], action: Int[Array, ""]) -> Outcomes:
        """What may follow; the same number K of outcomes everywhere, of which some may be impossible."""
        after = jax.tree.map(lambda leaf: leaf[None], self.transition(state, action))
        return Outcomes(jnp.ones(1), *after)

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
        probability, *after = self.outcomes(state, action)
        drawn = 0 if probability.size == 1 else jax.random.choice(key, probability.size, p=probability)
        next_state, reward, ends = (leaf[drawn] for leaf in after)
        return next_state, reward, ends

    def tables(self) -> Tables:
        """The whole environment as arrays."""
        return Tables(*in_float64(_tabulate)(self))


def _tabulate(env: FiniteEnvironment) -> tuple[Array, ...]:
    states, actions = jnp.arange(env.states), jnp.arange(env.actions)
    step = jax.vmap(jax.vmap(env.outcomes, (None, 0)), (0, None))
    return *step(states, actions), jax.vmap(env.observe)(states)
