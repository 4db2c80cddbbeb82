"""Whatever acts on augmented states, as estimators ask it."""

import abc
from typing import NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Int, Shaped
from scipy.special import logsumexp

from aetdice.evaluation import Policy
from aetdice.networks import Categorical, PolicyNetwork

BLOCK = 1 << 13
"""Rows that a network sees at once, or as many as it takes; padded, so that few sizes are compiled."""
SAMPLED = 8
"""Actions that stand for a policy over continuous ones."""


class Augmented(NamedTuple):
    """States (s, R_acc, t), a row each."""

    observations: Shaped[np.ndarray, "n o"]
    accrued: Float[np.ndarray, "n m"]
    time: Int[np.ndarray, " n"]

    def take(self, rows: Int[np.ndarray, " k"] | slice) -> "Augmented":
        return Augmented(*(column[rows] for column in self))


class Shown(NamedTuple):
    """The same as a network sees them."""

    observations: Array
    accrued: Array
    time: Array


@runtime_checkable
class Actor(Protocol):
    """Whatever can be rolled out."""

    def sample(self, states: Augmented, rng: np.random.Generator) -> Shaped[np.ndarray, "n *a"]: ...


class Acting(abc.ABC):
    """π(a | s, R_acc, t)."""

    @abc.abstractmethod
    def choices(
        self, states: Augmented, seed: int
    ) -> tuple[Shaped[np.ndarray, "n k *a"], Float[np.ndarray, "n k"]]:
        """Actions and their probabilities: all of them, or as many samples as stand for them."""

    @abc.abstractmethod
    def likelihood(self, states: Augmented, actions: Shaped[np.ndarray, "n *a"]) -> Float[np.ndarray, " n"]:
        """log π of each row's action."""

    @abc.abstractmethod
    def sample(self, states: Augmented, rng: np.random.Generator) -> Shaped[np.ndarray, "n *a"]:
        """An action per row."""


class DiscreteActing(Acting):
    """All is known from the probabilities."""

    @abc.abstractmethod
    def probabilities(self, states: Augmented) -> Float[np.ndarray, "n a"]:
        """Of every action."""

    def choices(
        self, states: Augmented, seed: int
    ) -> tuple[Shaped[np.ndarray, "n k *a"], Float[np.ndarray, "n k"]]:
        del seed
        chances = self.probabilities(states)
        return np.broadcast_to(np.arange(chances.shape[1]), chances.shape), chances

    def likelihood(self, states: Augmented, actions: Shaped[np.ndarray, "n *a"]) -> Float[np.ndarray, " n"]:
        """An action that it does not know has probability 0."""
        chances = self.probabilities(states)
        known = actions < chances.shape[1]
        found = chances[np.arange(len(chances)), np.where(known, actions, 0)]
        with np.errstate(divide="ignore"):
            return np.log(np.where(known, found, 0.0))

    def sample(self, states: Augmented, rng: np.random.Generator) -> Shaped[np.ndarray, "n *a"]:
        cumulative = np.cumsum(self.probabilities(states), axis=1)
        drawn = rng.random(len(cumulative))[:, None] * cumulative[:, -1:]
        return np.argmax(cumulative > drawn, axis=1)


class NetworkActing(DiscreteActing):
    """A policy of discrete actions."""

    def __init__(self, policy: Policy) -> None:
        self.network = policy.network

    def probabilities(self, states: Augmented) -> Float[np.ndarray, "n a"]:
        parts = [np.asarray(_outputs(self.network, *rows), float) for rows in _blocks(self.network, states)]
        outputs = np.concatenate(parts)[: len(states.time)]
        weights = np.exp(outputs - outputs.max(axis=1, keepdims=True))
        return weights / weights.sum(axis=1, keepdims=True)


class ContinuousActing(Acting):
    """A policy of continuous actions: samples stand for it."""

    def __init__(self, policy: Policy) -> None:
        self.network = policy.network

    def choices(
        self, states: Augmented, seed: int
    ) -> tuple[Shaped[np.ndarray, "n k *a"], Float[np.ndarray, "n k"]]:
        rng = np.random.default_rng(seed)
        drawn = [self.sample(states, rng) for _ in range(SAMPLED)]
        return np.stack(drawn, axis=1), np.full((len(states.time), SAMPLED), 1 / SAMPLED)

    def likelihood(self, states: Augmented, actions: Shaped[np.ndarray, "n *a"]) -> Float[np.ndarray, " n"]:
        shown = np.asarray(actions, np.float32)
        parts = [
            np.asarray(_log_densities(self.network, *rows), float)
            for rows in _blocks(self.network, states, shown)
        ]
        return np.concatenate(parts)[: len(states.time)]

    def sample(self, states: Augmented, rng: np.random.Generator) -> Shaped[np.ndarray, "n *a"]:
        parts = []
        for rows in _blocks(self.network, states):
            keys = jax.random.split(jax.random.key(int(rng.integers(1 << 31))), len(rows[0]))
            drawn = _samples(self.network, Shown(*rows), keys)
            parts.append(np.asarray(drawn).astype(np.float64))
        return np.concatenate(parts)[: len(states.time)]


class MixtureActing(Acting):
    """A mixture policy: rows of a rollout draw a course at time 0 and keep to it.

    Asked for single states, it answers as if every course were as likely there as at the start.
    """

    def __init__(self, policy: Policy) -> None:
        self.chances = np.array(policy.courses) / sum(policy.courses)
        self.courses = [acting_of(policy.on_course(c)) for c in range(len(self.chances))]
        self._kept = np.zeros(0, int)

    def choices(
        self, states: Augmented, seed: int
    ) -> tuple[Shaped[np.ndarray, "n k *a"], Float[np.ndarray, "n k"]]:
        each = [acting.choices(states, seed) for acting in self.courses]
        chances = [chance * own for chance, (_, own) in zip(self.chances, each, strict=True)]
        return np.concatenate([actions for actions, _ in each], axis=1), np.concatenate(chances, axis=1)

    def likelihood(self, states: Augmented, actions: Shaped[np.ndarray, "n *a"]) -> Float[np.ndarray, " n"]:
        each = np.stack([acting.likelihood(states, actions) for acting in self.courses])
        return logsumexp(each, axis=0, b=self.chances[:, None])

    def sample(self, states: Augmented, rng: np.random.Generator) -> Shaped[np.ndarray, "n *a"]:
        if not states.time.any():
            self._kept = rng.choice(len(self.chances), len(states.time), p=self.chances)
        drawn = np.stack([acting.sample(states, rng) for acting in self.courses])
        return drawn[self._kept, np.arange(len(self._kept))]


def acting_of(policy: Policy) -> Acting:
    """How estimators ask a policy."""
    if policy.network.is_mixture:
        return MixtureActing(policy)
    if isinstance(policy.network.head, Categorical):
        return NetworkActing(policy)
    return ContinuousActing(policy)


def _blocks(
    network: PolicyNetwork, states: Augmented, *others: Shaped[np.ndarray, "n *a"]
) -> list[tuple[Array, ...]]:
    kind = np.float32 if network.encoder.sizes is None else np.int32
    columns = [
        np.asarray(states.observations, kind),
        np.asarray(states.accrued, np.float32),
        np.asarray(states.time, np.int32),
        *others,
    ]
    size = min(BLOCK, 1 << max(len(states.time) - 1, 1).bit_length())
    short = -len(states.time) % size
    padded = [np.concatenate([c, np.repeat(c[:1], short, axis=0)]) for c in columns]
    firsts = range(0, len(padded[0]), size)
    return [jax.device_put(tuple(c[first : first + size] for c in padded)) for first in firsts]


@eqx.filter_jit
def _outputs(network: PolicyNetwork, observations: Array, accrued: Array, time: Array) -> Float[Array, "n k"]:
    return jax.vmap(network.outputs)(observations, accrued, time)


@eqx.filter_jit
def _log_densities(
    network: PolicyNetwork, observations: Array, accrued: Array, time: Array, actions: Array
) -> Float[Array, " n"]:
    return jax.vmap(network.log_probability)(observations, accrued, time, actions)


@eqx.filter_jit
def _samples(network: PolicyNetwork, shown: Shown, keys: Array) -> Shaped[Array, "n *a"]:
    return jax.vmap(network.sample)(*shown, keys)
