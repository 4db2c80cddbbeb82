"""What the ratios of a member look like over a whole dataset."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from aetdice.algorithms.dual import (
    DiceHyper,
    DualSetting,
    DualState,
    expected_next,
    step_residuals,
    step_rewards,
)
from aetdice.data.device import DeviceData, Steps
from aetdice.data.passes import add, pass_over
from aetdice.dice import Flow, dual_loss, ratio, regulariser
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


class RatioSums(NamedTuple):
    """What a part of a dataset adds to the diagnostics; parts are merged by `merge`."""

    rows: Float[Array, ""]
    zeros: Float[Array, ""]
    weight: Float[Array, ""]
    mass: Float[Array, ""]
    square: Float[Array, ""]
    """Σ w² d^D."""
    regularised: Float[Array, ""]
    by_time: Float[Array, " horizon"]
    total: Float[Array, " parts"]
    ended: Float[Array, " parts"]
    rewards: Float[Array, "parts n"]
    moved: Float[Array, " tests"]
    """Σ w d^D (γψ(s̃') - ψ(s̃))."""
    mean: Float[Array, " tests"]
    deviation: Float[Array, " tests"]
    """Of ψ: its mean over the steps, and Σ (ψ - mean)²."""


class StartMeans(NamedTuple):
    """Means over initial states."""

    nu: Float[Array, ""]
    tests: Float[Array, " tests"]


@eqx.filter_jit
def diagnose_ratios(
    state: DualState, hyper: DiceHyper, data: DeviceData, setting: DualSetting
) -> RatioDiagnostics:
    """Ratios of the averaged ν over all steps, at the final β."""
    steps, look = data.steps, ratios_of(state, hyper, data.steps.count, setting)

    def block(rows: Int[Array, " block"], counted: Bool[Array, " block"]) -> tuple[RatioSums, Any]:
        w, mass, sums = look(steps.take(rows), counted)
        return sums, (w, mass)

    sums, (w, mass) = pass_over(steps.count, block, merge)
    starts = start_means(state, steps.take(data.initial))
    return assemble(state, hyper, sums, starts, setting, w, mass, steps.time)


def ratios_of(
    state: DualState, hyper: DiceHyper, stored: int, setting: DualSetting
) -> Callable[
    [Steps, Bool[Array, " steps"]], tuple[Float[Array, " steps"], Float[Array, " steps"], RatioSums]
]:
    """w and w d^D of some of the stored steps, and the sums of those that are counted."""
    mu, sines = multiplier(hyper.objective.aggregation, state.slack), _test_functions(state)

    def look(
        steps: Steps, counted: Bool[Array, " steps"]
    ) -> tuple[Float[Array, " steps"], Float[Array, " steps"], RatioSums]:
        residuals = step_residuals(state.average, hyper.objective, steps, mu, setting)
        weights = jnp.where(counted, setting.flow.transition_weights(steps.weight, stored), 0)
        w = ratio(residuals, hyper.beta, setting.divergence)
        mass, counts = w * weights, counted.astype(w.dtype)
        here = jax.vmap(sines)(steps.observation, steps.accrued, steps.time)
        mean = counts @ here / jnp.sum(counts)
        moved = cast(setting.flow.discount, mass) * expected_next(sines, steps) - here
        rewards = step_rewards(hyper.objective.utility, steps, setting.terminal_reward)
        return (
            w,
            mass,
            RatioSums(
                rows=jnp.sum(counts),
                zeros=counts @ (w <= 0).astype(w.dtype),
                weight=jnp.sum(weights),
                mass=jnp.sum(mass),
                square=jnp.sum(mass * w),
                regularised=regulariser(residuals, weights, hyper.beta, setting.divergence),
                by_time=jax.ops.segment_sum(mass, steps.time, state.average.encoder.horizon),
                total=setting.flow.sums(mass, steps.time),
                ended=setting.flow.sums(steps.terminates * mass, steps.time),
                rewards=setting.flow.sums(mass[:, None] * rewards, steps.time),
                moved=mass @ moved,
                mean=mean,
                deviation=counts @ jnp.square(here - mean[None]),
            ),
        )

    return look


def merge(one: RatioSums, other: RatioSums) -> RatioSums:
    """The sums of two parts together; deviations about the common mean (Chan et al.)."""
    added = add(one, other)
    share, apart = other.rows / added.rows, other.mean - one.mean
    return added._replace(
        mean=one.mean + share * apart,
        deviation=added.deviation + one.rows * share * apart**2,
    )


def start_means(state: DualState, first: Steps) -> StartMeans:
    """ν and the test functions where episodes begin."""
    sines = _test_functions(state)
    arguments = first.observation, first.accrued, first.time
    return StartMeans(
        jnp.mean(jax.vmap(state.average)(*arguments)), jnp.mean(jax.vmap(sines)(*arguments), axis=0)
    )


def assemble(
    state: DualState,
    hyper: DiceHyper,
    sums: RatioSums,
    starts: StartMeans,
    setting: DualSetting,
    w: Float[Array, " steps"],
    mass: Float[Array, " steps"],
    time: Int[Array, " steps"],
) -> RatioDiagnostics:
    """The diagnostics of a dataset from its sums; w, w d^D and time are of all its steps, or of none."""
    aggregation, flow = hyper.objective.aggregation, setting.flow
    zero = hyper.objective.utility(jnp.zeros_like(state.average.encoder.accrued_range, jnp.float32))
    factors = flow.factors(sums.total, sums.ended)
    none = jnp.zeros(0, mass.dtype)
    value = dual_loss(
        starts.nu[None],
        none,
        state.slack,
        zero,
        initial_weights=jnp.ones_like(starts.nu[None]),
        weights=none,
        beta=hyper.beta,
        divergence=setting.divergence,
        aggregation=aggregation,
        flow=flow,
    )
    spread = jnp.sqrt(sums.deviation / sums.rows)
    return RatioDiagnostics(
        ratios=w,
        sample_weights=mass * flow.at(factors, time),
        mass=sums.by_time,
        mass_violation=flow.violation(sums.total, sums.ended),
        flow_violation=flow_violation(starts.tests, sums.moved, spread, flow),
        effective_sample_size=sums.mass**2 / (sums.weight * sums.square + 1e-30),
        zero_share=sums.zeros / sums.rows,
        dual_value=value + sums.regularised,
        claimed_value=aggregation(zero + cast(flow.reward_scale, zero) * (factors @ sums.rewards)),
        slack=state.slack,
        multiplier=multiplier(aggregation, state.slack),
    )


def flow_violation(
    entering: Float[Array, " tests"],
    moved: Float[Array, " tests"],
    spread: Float[Array, " tests"],
    flow: Flow,
) -> Float[Array, ""]:
    """Root mean square over test functions ψ of E[ψ(s̃_0)] + Σ w d^D (γψ(s̃') - ψ(s̃)) / c₀, by ψ's spread.

    It is per unit of the mass c₀ that enters: a discounted flow lets in 1 - γ only, and may look balanced
    step by step where all of that is lost.
    """
    mass = cast(flow.initial_weight, entering)
    return jnp.sqrt(jnp.mean(jnp.square((entering + moved / mass) / (spread + 1e-6))))


def _test_functions(state: DualState) -> Callable[[Array, Array, Array], Array]:
    """Random sines ψ of the encoded state.

    The exact refit balances the flow for ν's own features, so others must ask; all of them find it balanced
    only where every state's flow is.
    """
    encoder = state.average.encoder
    directions, phases = jax.random.split(jax.random.key(TEST_SEED))
    slopes = jax.random.normal(directions, (encoder.features, TEST_FUNCTIONS), jnp.float32)
    shifts = jax.random.uniform(phases, (TEST_FUNCTIONS,), maxval=2 * jnp.pi)
    return lambda observation, accrued, time: jnp.sin(encoder(observation, accrued, time) @ slopes + shifts)
