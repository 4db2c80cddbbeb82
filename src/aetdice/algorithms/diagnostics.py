"""What the ratios of a member look like over a whole dataset."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from aetdice.algorithms.dice import DiceHyper, DiceSetting, DualState, step_residuals, step_rewards
from aetdice.data.resident import ResidentData, blocks
from aetdice.dice import dual_loss, ratio
from aetdice.objectives import multiplier


class RatioReport(NamedTuple):
    """Diagnostics of one member on one dataset."""

    ratios: Float[Array, " steps"]
    mass: Float[Array, " horizon"]
    """c_t = Σ_{steps at t} w d^D: 1 at every t for whole episodes once converged."""
    mass_violation: Float[Array, ""]
    effective_sample_size: Float[Array, ""]
    """(E w)² / E w², between 0 and 1."""
    zero_share: Float[Array, ""]
    """The share of steps with w = 0."""
    dual_value: Float[Array, ""]
    claimed_value: Float[Array, ""]
    """J that the ratios promise, G(F(0) + Σ w d^D r̃), each time step's mass set to what it should be."""
    slack: Float[Array, " n"]
    multiplier: Float[Array, " n"]


@eqx.filter_jit
def report_ratios(
    state: DualState, hyper: DiceHyper, data: ResidentData, setting: DiceSetting
) -> RatioReport:
    """Ratios of the averaged ν over all steps, at the final β."""
    steps, aggregation = data.steps, hyper.objective.aggregation
    horizon = state.average.offsets.shape[0]
    mu = multiplier(aggregation, state.slack)
    rows = jax.lax.map(
        lambda block: step_residuals(state.average, hyper.objective, block, mu, setting), blocks(steps)
    )
    residuals = rows.reshape(-1)[: steps.count]
    weights = setting.flow.transition_weights(steps.weight)
    w = ratio(residuals, hyper.beta, setting.divergence)
    mass = w * weights
    first = steps.take(data.initial)
    value = dual_loss(
        jax.vmap(state.average)(first.observation, first.accrued, first.time),
        residuals,
        state.slack,
        hyper.objective.utility(jnp.zeros_like(steps.accrued[0])),
        initial_weights=jnp.full(data.initial.shape, 1 / data.initial.shape[0]),
        weights=weights,
        beta=hyper.beta,
        divergence=setting.divergence,
        aggregation=aggregation,
        flow=setting.flow,
    )
    by_time = jax.ops.segment_sum(mass, steps.time, horizon)
    behaviour = jax.ops.segment_sum(weights, steps.time, horizon)
    balanced = mass * jnp.where(by_time > 0, behaviour / jnp.maximum(by_time, 1e-12), 0)[steps.time]
    rewards = step_rewards(hyper.objective.utility, steps, setting)
    zero = hyper.objective.utility(jnp.zeros_like(steps.accrued[0]))
    return RatioReport(
        ratios=w,
        mass=by_time,
        mass_violation=setting.flow.mass_violation(mass, steps.time, steps.terminated),
        effective_sample_size=jnp.sum(mass) ** 2 / (jnp.sum(weights) * jnp.sum(mass * w) + 1e-30),
        zero_share=jnp.mean(w <= 0),
        dual_value=value,
        claimed_value=aggregation(zero + balanced @ rewards),
        slack=state.slack,
        multiplier=mu,
    )
