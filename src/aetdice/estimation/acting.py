"""Whatever acts on augmented states, as estimators ask it."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Shaped

from aetdice.evaluation import Policy
from aetdice.networks import Categorical, PolicyNetwork

BLOCK = 1 << 13
"""Rows that a network sees at once; the last block is padded, so that it is compiled once."""
SAMPLED = 8
"""Actions that stand for a policy over continuous ones."""


class Acting(abc.ABC):
    """π(a | s, R_acc, t)."""

    @abc.abstractmethod
    def probabilities(
        self,
        observations: Shaped[np.ndarray, "n o"],
        accrued: Float[np.ndarray, "n m"],
        time: Int[np.ndarray, " n"],
    ) -> Float[np.ndarray, "n a"]:
        """Of all actions, where they are discrete."""

    def choices(
        self,
        observations: Shaped[np.ndarray, "n o"],
        accrued: Float[np.ndarray, "n m"],
        time: Int[np.ndarray, " n"],
        seed: int,
    ) -> tuple[Shaped[np.ndarray, "n k *a"], Float[np.ndarray, "n k"]]:
        """Actions and their probabilities: all of them, or as many samples as stand for them."""
        chances = self.probabilities(observations, accrued, time)
        return np.broadcast_to(np.arange(chances.shape[1]), chances.shape), chances

    def likelihood(
        self,
        observations: Shaped[np.ndarray, "n o"],
        accrued: Float[np.ndarray, "n m"],
        time: Int[np.ndarray, " n"],
        actions: Shaped[np.ndarray, "n *a"],
    ) -> Float[np.ndarray, " n"]:
        """log π of each row's action; an action that it does not know has probability 0."""
        chances = self.probabilities(observations, accrued, time)
        known = actions < chances.shape[1]
        found = chances[np.arange(len(chances)), np.where(known, actions, 0)]
        with np.errstate(divide="ignore"):
            return np.log(np.where(known, found, 0.0))

    def sample(
        self,
        observations: Shaped[np.ndarray, "n o"],
        accrued: Float[np.ndarray, "n m"],
        time: Int[np.ndarray, " n"],
        rng: np.random.Generator,
    ) -> Shaped[np.ndarray, "n *a"]:
        """An action per row."""
        cumulative = np.cumsum(self.probabilities(observations, accrued, time), axis=1)
        drawn = rng.random(len(cumulative))[:, None] * cumulative[:, -1:]
        return np.argmax(cumulative > drawn, axis=1)


class NetworkActing(Acting):
    """A policy of discrete actions."""

    def __init__(self, policy: Policy) -> None:
        self.network = policy.network

    def probabilities(
        self,
        observations: Shaped[np.ndarray, "n o"],
        accrued: Float[np.ndarray, "n m"],
        time: Int[np.ndarray, " n"],
    ) -> Float[np.ndarray, "n a"]:
        outputs = _outputs(self.network, observations, accrued, time)
        weights = np.exp(outputs - outputs.max(axis=1, keepdims=True))
        return weights / weights.sum(axis=1, keepdims=True)


class ContinuousActing(NetworkActing):
    """A policy of continuous actions: samples stand for it."""

    def probabilities(
        self,
        observations: Shaped[np.ndarray, "n o"],
        accrued: Float[np.ndarray, "n m"],
        time: Int[np.ndarray, " n"],
    ) -> Float[np.ndarray, "n a"]:
        raise TypeError("continuous actions have densities")

    def choices(
        self,
        observations: Shaped[np.ndarray, "n o"],
        accrued: Float[np.ndarray, "n m"],
        time: Int[np.ndarray, " n"],
        seed: int,
    ) -> tuple[Shaped[np.ndarray, "n k *a"], Float[np.ndarray, "n k"]]:
        rng = np.random.default_rng(seed)
        drawn = [self.sample(observations, accrued, time, rng) for _ in range(SAMPLED)]
        return np.stack(drawn, axis=1), np.full((len(time), SAMPLED), 1 / SAMPLED)

    def likelihood(
        self,
        observations: Shaped[np.ndarray, "n o"],
        accrued: Float[np.ndarray, "n m"],
        time: Int[np.ndarray, " n"],
        actions: Shaped[np.ndarray, "n *a"],
    ) -> Float[np.ndarray, " n"]:
        shown = np.asarray(actions, np.float32)
        parts = [
            np.asarray(_log_densities(self.network, *rows), float)
            for rows in _blocks(self.network, observations, accrued, time, shown)
        ]
        return np.concatenate(parts)[: len(time)]

    def sample(
        self,
        observations: Shaped[np.ndarray, "n o"],
        accrued: Float[np.ndarray, "n m"],
        time: Int[np.ndarray, " n"],
        rng: np.random.Generator,
    ) -> Shaped[np.ndarray, "n *a"]:
        parts = []
        for rows in _blocks(self.network, observations, accrued, time):
            key = jax.random.key(int(rng.integers(1 << 31)))
            parts.append(np.asarray(_samples(self.network, *rows, jax.random.split(key, BLOCK)), float))
        return np.concatenate(parts)[: len(time)]


def acting_of(policy: Policy) -> NetworkActing:
    """How estimators ask a policy."""
    return (NetworkActing if isinstance(policy.network.head, Categorical) else ContinuousActing)(policy)


def _blocks(
    network: PolicyNetwork, observations: np.ndarray, accrued: np.ndarray, *others: np.ndarray
) -> list[tuple[Array, ...]]:
    kind = np.float32 if network.encoder.sizes is None else np.int32
    columns = [np.asarray(observations, kind), np.asarray(accrued, np.float32), *others]
    columns = [c.astype(np.int32) if np.issubdtype(c.dtype, np.integer) else c for c in columns]
    short = -len(accrued) % BLOCK
    padded = [np.concatenate([c, np.repeat(c[:1], short, axis=0)]) for c in columns]
    return [
        tuple(jnp.asarray(c[first : first + BLOCK]) for c in padded)
        for first in range(0, len(padded[0]), BLOCK)
    ]


def _outputs(
    network: PolicyNetwork, observations: np.ndarray, accrued: np.ndarray, time: np.ndarray
) -> Float[np.ndarray, "n k"]:
    parts = [
        np.asarray(_block_outputs(network, *rows), float)
        for rows in _blocks(network, observations, accrued, time)
    ]
    return np.concatenate(parts)[: len(time)]


@eqx.filter_jit
def _block_outputs(
    network: PolicyNetwork, observations: Array, accrued: Array, time: Array
) -> Float[Array, "n k"]:
    return jax.vmap(network.outputs)(observations, accrued, time)


@eqx.filter_jit
def _log_densities(
    network: PolicyNetwork, observations: Array, accrued: Array, time: Array, actions: Array
) -> Float[Array, " n"]:
    return jax.vmap(network.log_probability)(observations, accrued, time, actions)


@eqx.filter_jit
def _samples(
    network: PolicyNetwork, observations: Array, accrued: Array, time: Array, keys: Array
) -> Shaped[Array, "n *a"]:
    return jax.vmap(network.sample)(observations, accrued, time, keys)
