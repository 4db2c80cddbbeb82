"""Acting in many episodes at once, with JAX."""

import secrets
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
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
) -> Shaped[Array, "n *a"]:
    """One action per row; pure. Every row draws from a key of its own."""
    if greedy:
        return jax.vmap(network.greedy)(observations, accrued, time)
    keys = jax.random.split(key, observations.shape[0])
    return jax.vmap(network.sample)(observations, accrued, time, keys)


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
        self._sessions = Sessions(interface_of(network.encoder), self._choose, count, transform, coding)
        self._key = jax.random.key(secrets.randbits(32) if seed is None else seed)

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
    ) -> Shaped[np.ndarray, "n *a"]:
        self._key, key = jax.random.split(self._key)
        seen, earned, now = jnp.asarray(observations), jnp.asarray(accrued), jnp.asarray(time)
        return np.asarray(sample_actions(self._network, seen, earned, now, key, self._greedy))


def interface_of(encoder: Encoder) -> Interface:
    """What a policy with this encoder is told."""
    return Interface(encoder.horizon, len(encoder.centre), encoder.sizes, len(encoder.accrued_range))
