"""Cloning: a policy fitted to steps drawn in proportion to their weight."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt32

from aetdice.algorithms.optimiser import ADAM, cosine, descend
from aetdice.data.resident import Steps
from aetdice.errors import InputError
from aetdice.networks import Policy


class CloningState(NamedTuple):
    """A policy and its optimiser."""

    policy: Policy
    optimiser: optax.OptState


def init_cloning(policy: Policy) -> CloningState:
    return CloningState(policy, ADAM.init(eqx.filter(policy, eqx.is_inexact_array)))


def cloning_loss(policy: Policy, batch: Steps, weights: Float[Array, " batch"]) -> Float[Array, ""]:
    """-E[w log π(a|s̃)]: weighted cloning; w = 1 for steps drawn in proportion to their weight."""
    fit = jax.vmap(policy.log_probability)(batch.observation, batch.accrued, batch.time, batch.action)
    return -jnp.mean(weights * fit)


def thinned(policy: Policy, share: float, key: PRNGKeyArray) -> Policy:
    """The policy without a random share of its hidden units, the others raised to make up for them."""

    def thin(key: PRNGKeyArray, weight: Float[Array, "i o"]) -> Float[Array, "i o"]:
        kept = jax.random.bernoulli(key, 1 - share, (weight.shape[0], 1))
        return jnp.where(kept, weight / (1 - share), 0)

    into, *onward = policy.net.weights
    keys = jax.random.split(key, len(onward))
    weights = (into, *(thin(k, weight) for k, weight in zip(keys, onward, strict=True)))
    return eqx.tree_at(lambda p: p.net.weights, policy, weights)


def update_cloning(
    state: CloningState,
    batch: Steps,
    weights: Float[Array, " batch"],
    learning_rate: Float[Array, ""],
    progress: Float[Array, ""],
    dropout: float,
    key: PRNGKeyArray,
) -> CloningState:
    """One step on the log-likelihood of a policy without some of its units."""

    def loss(policy: Policy) -> Float[Array, ""]:
        return cloning_loss(thinned(policy, dropout, key) if dropout else policy, batch, weights)

    gradient = eqx.filter_grad(loss)(state.policy)
    return CloningState(*descend(state.policy, gradient, state.optimiser, learning_rate * cosine(progress)))


class Lessons(NamedTuple):
    """Which steps a policy is shown, and how much each counts once shown."""

    tickets: UInt32[Array, "*p steps"]
    weights: Float[Array, "*p steps"] | None
    """None where every shown step counts 1."""

    @property
    def of_twins(self) -> "Lessons":
        """The last policy's, a twin's, for all."""
        return jax.tree.map(lambda each: jnp.broadcast_to(each[-1], each.shape), self)


def lottery(weights: Float[np.ndarray, " steps"]) -> UInt32[np.ndarray, " steps"]:
    """Tickets for drawing steps in proportion to their weight: cumulative shares of 2³².

    Integers, so that millions of steps are drawn as exactly as a few.
    """
    if not np.all(np.isfinite(weights)) or weights.min() < 0 or not weights.any():
        raise InputError("the weights of steps must be finite, none negative and not all zero")
    shares = np.cumsum(weights.astype(np.float64))
    return np.minimum(np.round(shares / shares[-1] * 2.0**32), 2.0**32 - 1).astype(np.uint32)


def draw(tickets: UInt32[Array, " steps"], key: PRNGKeyArray, count: int) -> Int[Array, " count"]:
    """Rows drawn by a lottery; never one without a share, so no dart flies beyond the last ticket."""
    darts = jnp.minimum(jax.random.bits(key, (count,), jnp.uint32), tickets[-1] - 1)
    return jnp.searchsorted(tickets, darts, side="right", method="scan_unrolled")
