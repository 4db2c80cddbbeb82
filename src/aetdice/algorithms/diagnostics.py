"""What the ratios of a member look like over a whole dataset."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from aetdice.algorithms.dual import (
    DiceHyper,
    DualSetting,
    DualState,
    expected_next,
    step_residuals,
    step_rewards,
)
from aetdice.data.device import DeviceData, Steps, blocks
from aetdice.dice import dual_loss, ratio
from aetdice.objectives import multiplier
from aetdice.objectives.parameters import cast

TEST_FUNCTIONS = 64
TEST_SEED = 20_261


class RatioDiagnostics(NamedTuple):
    """Diagnostics of one member on one dataset."""

    ratios: Float[Array, " steps"]
    sample_weights: Float[Array, " steps"]
    """w d^D with its mass conserved: how often a policy should see each step."""
    mass: Float[Array, " horizon"]
    """c_t = Σ_{steps at t} w d^D: 1 at every t for whole episodes once converged."""
    mass_violation: Float[Array, ""]
    flow_violation: Float[Array, ""]
    """How far w d^D is from obeying the flow, as seen by random functions of the augmented state."""
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
def diagnose_ratios(
    state: DualState, hyper: DiceHyper, data: DeviceData, setting: DualSetting
) -> RatioDiagnostics:
    """Ratios of the averaged ν over all steps, at the final β."""
    steps, aggregation = data.steps, hyper.objective.aggregation
    horizon = state.average.encoder.horizon
    mu = multiplier(aggregation, state.slack)
    first = steps.take(data.initial)
    rows = jax.lax.map(
        lambda block: step_residuals(state.average, hyper.objective, block, mu, setting), blocks(steps)
    )
    residuals = rows.reshape(-1)[: steps.count]
    weights = setting.flow.transition_weights(steps.weight)
    w = ratio(residuals, hyper.beta, setting.divergence)
    mass = w * weights
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
    balanced = setting.flow.balance(mass, steps.time, steps.terminates)
    rewards = step_rewards(hyper.objective.utility, steps, setting.terminal_reward)
    zero = hyper.objective.utility(jnp.zeros_like(steps.accrued[0]))
    return RatioDiagnostics(
        ratios=w,
        sample_weights=balanced,
        mass=jax.ops.segment_sum(mass, steps.time, horizon),
        mass_violation=setting.flow.mass_violation(mass, steps.time, steps.terminates),
        flow_violation=_flow_violation(state, mass, data, setting),
        effective_sample_size=jnp.sum(mass) ** 2 / (jnp.sum(weights) * jnp.sum(mass * w) + 1e-30),
        zero_share=jnp.mean(w <= 0),
        dual_value=value,
        claimed_value=aggregation(zero + cast(setting.flow.reward_scale, zero) * (balanced @ rewards)),
        slack=state.slack,
        multiplier=mu,
    )


def _flow_violation(
    state: DualState, mass: Float[Array, " steps"], data: DeviceData, setting: DualSetting
) -> Float[Array, ""]:
    """Root mean square over test functions ψ of E[ψ(s̃_0)] + Σ w d^D (γψ(s̃') - ψ(s̃)) / c₀.

    Per unit of the mass c₀ that enters: a discounted flow lets in 1 - γ only, and may look balanced step
    by step where all of that is lost. The exact refit makes this 0 for ν's own features, so others must
    ask: random sines of the encoded state, each divided by its spread over the data. 0 only where every
    state's flow is balanced.
    """
    steps, encoder = data.steps, state.average.encoder
    directions, phases = jax.random.split(jax.random.key(TEST_SEED))
    slopes = jax.random.normal(directions, (encoder.features, TEST_FUNCTIONS), jnp.float32)
    shifts = jax.random.uniform(phases, (TEST_FUNCTIONS,), maxval=2 * jnp.pi)

    def sines(observation: Array, accrued: Array, time: Array) -> Array:
        return jnp.sin(encoder(observation, accrued, time) @ slopes + shifts)

    def both(block: Steps) -> tuple[Array, Array]:
        here = jax.vmap(sines)(block.observation, block.accrued, block.time)
        return here, expected_next(sines, block)

    here, there = (w.reshape(-1, TEST_FUNCTIONS)[: steps.count] for w in jax.lax.map(both, blocks(steps)))
    entering = cast(setting.flow.initial_weight, mass) * jnp.mean(here[data.initial], axis=0)
    left_over = entering + mass @ (cast(setting.flow.discount, mass) * there - here)
    unit = cast(setting.flow.initial_weight, mass) * (jnp.std(here, axis=0) + 1e-6)
    return jnp.sqrt(jnp.mean(jnp.square(left_over / unit)))
