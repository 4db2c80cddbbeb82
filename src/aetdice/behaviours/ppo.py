"""Proximal policy optimisation for a vector of objectives, its update one compiled program."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int

from aetdice.behaviours.agent import Agent, encode
from aetdice.behaviours.recipe import Recipe


class Batch(NamedTuple):
    """What `span` steps of n environments brought; rewards are in units of their returns' spread."""

    observations: Float[Array, "span n o"]
    preferences: Float[Array, "span n m"]
    actions: Float[Array, "span n a"]
    log_probabilities: Float[Array, "span n"]
    rewards: Float[Array, "span n m"]
    following: Float[Array, "span n o"]
    """The observation after the step, before any reset."""
    terminated: Bool[Array, "span n"]
    ended: Bool[Array, "span n"]
    """Terminated, or cut at the horizon."""


class Sample(NamedTuple):
    """One step, as the loss sees it."""

    features: Float[Array, "*b f"]
    action: Float[Array, "*b a"]
    log_probability: Float[Array, "*b"]
    advantage: Float[Array, "*b"]
    target: Float[Array, "*b m"]


class Metrics(NamedTuple):
    """Means over an update."""

    loss: Float[Array, ""]
    value_loss: Float[Array, ""]
    clipped: Float[Array, ""]
    """Share of the ratios outside 1 ± clip."""


def optimiser(recipe: Recipe) -> optax.GradientTransformation:
    """Adam without its learning rate, which falls during the training."""
    return optax.chain(optax.clip_by_global_norm(recipe.largest_gradient), optax.scale_by_adam(eps=1e-5))


def generalised_advantages(
    rewards: Float[Array, "span m"],
    values: Float[Array, "span m"],
    next_values: Float[Array, "span m"],
    terminated: Bool[Array, " span"],
    ended: Bool[Array, " span"],
    discount: float,
    trace: float,
) -> Float[Array, "span m"]:
    """A_t = δ_t + γλ(1 - ended) A_{t+1} with δ_t = r_t + γ(1 - terminated) V(s_{t+1}) - V(s_t).

    Per objective. An episode cut at the horizon goes on in the value of its last observation.
    """

    def back(
        later: Float[Array, " m"], step: tuple[Float[Array, " m"], Bool[Array, ""]]
    ) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
        delta, ended = step
        advantage = delta + discount * trace * jnp.where(ended, 0.0, later)
        return advantage, advantage

    deltas = rewards + discount * jnp.where(terminated[:, None], 0.0, next_values) - values
    return jax.lax.scan(back, jnp.zeros_like(deltas[0]), (deltas, ended), reverse=True)[1]


def surrogate(log_ratio: Float[Array, ""], advantage: Float[Array, ""], clip: float) -> Float[Array, ""]:
    """min(ρ A, clip(ρ, 1 ± clip) A): to be maximised."""
    ratio = jnp.exp(log_ratio)
    return jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - clip, 1 + clip) * advantage)


def loss(agent: Agent, sample: Sample, recipe: Recipe) -> tuple[Float[Array, ""], Metrics]:
    """-surrogate + value_weight · ½‖V - target‖², of one step."""
    log_ratio = agent.log_probability(sample.features, sample.action) - sample.log_probability
    value_loss = 0.5 * jnp.sum(jnp.square(agent.critic(sample.features) - sample.target))
    total = recipe.value_weight * value_loss - surrogate(log_ratio, sample.advantage, recipe.clip)
    clipped = jnp.abs(jnp.exp(log_ratio) - 1) > recipe.clip
    return total, Metrics(total, value_loss, clipped.astype(total.dtype))


@eqx.filter_jit
def update(
    agent: Agent,
    moments: Any,
    batch: Batch,
    centre: Float[Array, " o"],
    spread: Float[Array, " o"],
    order: Int[Array, "epochs steps"],
    rate: Float[Array, ""],
    recipe: Recipe,
) -> tuple[Agent, Any, Metrics]:
    """All epochs over a batch, each in its own order; returns agent, optimiser state and metrics."""
    samples = prepare(agent, batch, centre, spread, recipe)
    transform = optimiser(recipe)

    def descend(state: tuple[Agent, Any], part: Sample) -> tuple[tuple[Agent, Any], Metrics]:
        agent, moments = state

        def mean_loss(agent: Agent) -> tuple[Float[Array, ""], Metrics]:
            losses, metrics = jax.vmap(lambda sample: loss(agent, sample, recipe))(part)
            return jnp.mean(losses), jax.tree.map(jnp.mean, metrics)

        gradient, metrics = eqx.filter_grad(mean_loss, has_aux=True)(agent)
        with jax.numpy_dtype_promotion("standard"):  # optax raises a float to an integer power
            step, moments = transform.update(gradient, moments)
        return (eqx.apply_updates(agent, jax.tree.map(lambda g: -rate * g, step)), moments), metrics

    def epoch(state: tuple[Agent, Any], order: Int[Array, " steps"]) -> tuple[tuple[Agent, Any], Metrics]:
        parts = jax.tree.map(lambda x: x[order].reshape(recipe.minibatches, -1, *x.shape[1:]), samples)
        return jax.lax.scan(descend, state, parts)

    (agent, moments), metrics = jax.lax.scan(epoch, (agent, moments), order)
    return agent, moments, jax.tree.map(jnp.mean, metrics)


def prepare(
    agent: Agent, batch: Batch, centre: Float[Array, " o"], spread: Float[Array, " o"], recipe: Recipe
) -> Sample:
    """A batch as flat samples: the advantage is w·A, standardised
    (no entry of w below the least weight); the target of V is A + V."""

    def encode_all(observations: Float[Array, "span n o"]) -> Float[Array, "span n f"]:
        encode_row = jax.vmap(encode, in_axes=(0, 0, None, None))
        rows = jax.vmap(encode_row, in_axes=(0, 0, None, None))
        return rows(observations, batch.preferences, centre, spread)

    values: Callable[[Array], Array] = jax.vmap(jax.vmap(agent.critic))
    now = encode_all(batch.observations)
    value, next_value = values(now), values(encode_all(batch.following))
    advantages = jax.vmap(generalised_advantages, in_axes=(1, 1, 1, 1, 1, None, None), out_axes=1)(
        batch.rewards, value, next_value, batch.terminated, batch.ended, recipe.discount, recipe.trace
    )
    weighted = jnp.sum(jnp.maximum(batch.preferences, recipe.least_weight) * advantages, axis=-1)
    weighted = (weighted - jnp.mean(weighted)) / (jnp.std(weighted) + 1e-8)
    samples = Sample(now, batch.actions, batch.log_probabilities, weighted, advantages + value)
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), samples)
