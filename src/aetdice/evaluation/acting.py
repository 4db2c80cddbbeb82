"""Acting in many episodes at once, with JAX."""

import secrets
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped
from numpy.typing import ArrayLike

from aetdice.data import Coding, Transform
from aetdice.networks import Categorical, Encoder, PolicyNetwork
from aetdice_runner.checks import Interface
from aetdice_runner.sessions import Sessions


@eqx.filter_jit
def sample_actions(
    network: PolicyNetwork,
    observations: Shaped[Array, "n o"],
    accrued: Float[Array, "n m"],
    time: Int[Array, " n"],
    key: PRNGKeyArray,
    greedy: bool = False,
    courses: Int[Array, " n"] | None = None,
) -> Shaped[Array, "n *a"]:
    """One action per row; pure. Every row draws from a key of its own."""
    on = [] if courses is None else [courses]
    if greedy:
        return jax.vmap(network.greedy)(observations, accrued, time, *on)
    keys = jax.random.split(key, observations.shape[0])
    return jax.vmap(network.sample)(observations, accrued, time, keys, *on)


@eqx.filter_jit
def draw_courses(
    network: PolicyNetwork, count: int, key: PRNGKeyArray, greedy: bool = False
) -> Int[Array, " n"] | None:
    """What new episodes of a mixture policy keep to; None for a policy that is no mixture."""
    return jax.vmap(lambda key: network.draw_course(key, greedy=greedy))(jax.random.split(key, count))


class VectorPolicy:
    """A policy in many episodes at once, as a vectorised environment steps them.

    `act(observations)` gives an action per episode, `observe(rewards, …, ended)` remembers what they
    brought; episodes that `ended` begin anew. Without a seed, randomness is fresh each time.
    """

    def __init__(
        self,
        network: PolicyNetwork,
        transform: Transform | None,
        count: int,
        seed: int | None = None,
        greedy: bool = False,
        coding: Coding | None = None,
    ) -> None:
        self._network, self._greedy = network, greedy
        self._key = jax.random.key(secrets.randbits(32) if seed is None else seed)
        draw = self._draw if network.is_mixture else None
        interface = interface_of(network.encoder)
        self._sessions = Sessions(interface, self._choose, count, transform, coding, draw)

    @property
    def count(self) -> int:
        return self._sessions.count

    @property
    def accrued(self) -> Float[np.ndarray, "n m"]:
        """What each episode has brought so far."""
        return self._sessions.accrued

    @property
    def time(self) -> Int[np.ndarray, " n"]:
        """How many steps each episode has had."""
        return self._sessions.time

    @property
    def discrete(self) -> bool:
        return isinstance(self._network.head, Categorical)

    def reset(self, which: Bool[np.ndarray, " n"] | None = None) -> None:
        """Begin these episodes anew, or all of them."""
        self._sessions.reset(which)

    def act(self, observations: ArrayLike | Sequence[Any]) -> Shaped[np.ndarray, "n *a"]:
        """An action per episode: sampled, because optima of SER and AET are stochastic; or greedy.

        With a coding, observations may hold categories, and actions are what the log calls them.
        """
        return self._sessions.act(observations)

    def observe(
        self,
        rewards: ArrayLike,
        next_observations: ArrayLike | Sequence[Any] | None = None,
        ended: Bool[np.ndarray, " n"] | None = None,
    ) -> None:
        """Remember what the last actions brought; a policy with a transform is told the raw rewards."""
        self._sessions.observe(rewards, next_observations, ended)

    def _choose(
        self,
        observations: Shaped[np.ndarray, "n o"],
        accrued: Float[np.ndarray, "n m"],
        time: Int[np.ndarray, " n"],
        courses: Int[np.ndarray, " n"] | None,
    ) -> Shaped[np.ndarray, "n *a"]:
        seen, earned, now, on = jax.device_put((observations, accrued, time, courses))
        return np.asarray(sample_actions(self._network, seen, earned, now, self._next(), self._greedy, on))

    def _draw(self, count: int) -> Int[np.ndarray, " n"]:
        return np.asarray(draw_courses(self._network, count, self._next(), self._greedy))

    def _next(self) -> PRNGKeyArray:
        self._key, key = jax.random.split(self._key)
        return key


def interface_of(encoder: Encoder) -> Interface:
    """What a policy with this encoder is told."""
    return Interface(encoder.horizon, len(encoder.centre), encoder.sizes, len(encoder.accrued_range))
