"""The dual stage of AETDICE and its relatives: ν and the slack k, down the one dual loss.

The tags D3, D4, D5 and D7 below are deviations from the paper's Algorithm 1: docs/paper.md has them all.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from aetdice.algorithms.optimiser import ADAM, average, cosine, descend
from aetdice.config import DualConfig
from aetdice.data import transformed_rewards
from aetdice.data.device import DeviceData, Steps
from aetdice.dice import FiniteHorizon, Flow, dual_loss, ratio, residual
from aetdice.networks import Nu
from aetdice.objectives import Divergence, Objective, Utility, multiplier
from aetdice.objectives.parameters import Parameter, cast, parameter


class DiceHyper(eqx.Module):
    """What may differ between the members of a population: all traced."""

    objective: Objective
    beta: Parameter = eqx.field(converter=parameter)
    learning_rate: Parameter = eqx.field(converter=parameter)
    slack_rate: Parameter = eqx.field(converter=parameter)
    first_beta: Parameter = eqx.field(converter=parameter)
    """Where β starts; at or below its final value there is no annealing."""
    averaging: Parameter = eqx.field(converter=parameter)
    """The decay of ν's average; 0 takes the last weights."""


class DualSetting(eqx.Module):
    """What is the same for all members: the shape of the program."""

    flow: Flow
    divergence: Divergence
    config: DualConfig = eqx.field(static=True)
    time_augmented: bool = eqx.field(static=True, default=False)
    """Use every stored step at every time (paper: app:time_augmentation); ν needs a head per step."""
    terminal_reward: bool = eqx.field(static=True, default=False)
    """Whether utility is paid at the end of an episode."""


class DualState(NamedTuple):
    """ν, its optimiser, its average, and the slack k."""

    nu: Nu
    optimiser: optax.OptState
    average: Nu
    slack: Float[Array, " n"]


def init_dual(nu: Nu, hyper: DiceHyper, data: DeviceData, setting: DualSetting) -> DualState:
    """The slack starts at the behaviour's own expected utilities."""
    slack = behaviour_utilities(hyper, data.steps, setting)
    return DualState(nu, ADAM.init(eqx.filter(nu, eqx.is_inexact_array)), nu, slack)


def behaviour_utilities(hyper: DiceHyper, steps: Steps, setting: DualSetting) -> Float[Array, " n"]:
    """F(0) + Σ d^D r̃."""
    return _attained(hyper, steps, setting.flow.transition_weights(steps.weight, steps.count), setting)


def update_dual(
    state: DualState,
    hyper: DiceHyper,
    data: DeviceData,
    rows: Int[Array, "windows length"],
    starts: Int[Array, " starts"],
    step: Float[Array, ""],
    setting: DualSetting,
) -> DualState:
    """One step of ν down the dual loss, and of k towards the utilities that the ratios attain."""
    batch, first = data.steps.take(rows.ravel()), data.steps.take(starts)
    progress = step / setting.config.steps
    beta = annealed_beta(hyper, progress, setting)
    weights = batch_weights(batch, data.count, setting)
    mu = multiplier(hyper.objective.aggregation, state.slack)

    def loss(nu: Nu) -> tuple[Float[Array, ""], Float[Array, "batch times"]]:
        if setting.time_augmented:
            entering = jax.vmap(nu)(first.observation, first.accrued, first.time)
            residuals = augmented_residuals(nu, hyper.objective, batch, mu, setting)
        else:
            entering, residuals = entering_and_residuals(
                nu, hyper.objective, first, batch, rows.shape[1], mu, setting
            )
            residuals = residuals[:, None]
        value = dual_loss(
            entering,
            residuals.ravel(),
            state.slack,
            hyper.objective.utility(jnp.zeros_like(first.accrued[0])),
            initial_weights=jnp.full(starts.shape, 1 / setting.config.starts),
            weights=weights.ravel(),
            beta=beta,
            divergence=setting.divergence,
            aggregation=hyper.objective.aggregation,
            flow=setting.flow,
        )
        return value, residuals

    gradient, residuals = eqx.filter_grad(loss, has_aux=True)(state.nu)
    rate = cast(hyper.learning_rate, beta) * cosine(progress)
    nu, optimiser = descend(state.nu, gradient, state.optimiser, rate)
    # D4: the ratios will come from an average of ν, since w is e divided by a small β.
    smooth = average(state.average, nu, jnp.minimum(cast(hyper.averaging, beta), (1 + step) / (10 + step)))
    w = ratio(residuals.ravel(), beta, setting.divergence).reshape(residuals.shape)
    mass = jnp.sum(weights * w, axis=1)
    attained = _attained(hyper, batch, mass, setting)
    # D5: towards the attained utilities; the plain gradient is ∇²G times that, dead where G is linear.
    slack = state.slack + cast(hyper.slack_rate, beta) * (attained - state.slack)
    return DualState(nu, optimiser, smooth, slack)


def annealed_beta(hyper: DiceHyper, progress: Float[Array, ""], setting: DualSetting) -> Float[Array, ""]:
    """D3: β₀^(1-s) β^s with s from 0 to 1 over the first part of training."""
    beta = cast(hyper.beta, progress)
    first = jnp.maximum(cast(hyper.first_beta, progress), beta)
    return first * (beta / first) ** jnp.clip(progress / setting.config.annealing, 0, 1)


def step_residuals(
    nu: Nu, objective: Objective, batch: Steps, mu: Float[Array, " n"], setting: DualSetting
) -> Float[Array, " batch"]:
    """e of every step at its own time."""
    return entering_and_residuals(nu, objective, batch.take(jnp.zeros(0, int)), batch, 1, mu, setting)[1]


def entering_and_residuals(
    nu: Nu,
    objective: Objective,
    first: Steps,
    batch: Steps,
    window: int,
    mu: Float[Array, " n"],
    setting: DualSetting,
) -> tuple[Float[Array, " starts"], Float[Array, " batch"]]:
    """ν where episodes start, and e of every step: one pass through the network for all of it.

    D7: the batch is made of windows of consecutive steps, so only the last of each needs ν of its
    successor; where an episode ends inside a window nothing follows, and the next step is not used.
    """
    reward = step_rewards(objective.utility, batch, setting.terminal_reward)
    if batch.successors is not None:
        entering = jax.vmap(nu)(first.observation, first.accrued, first.time)
        here = jax.vmap(nu)(batch.observation, batch.accrued, batch.time)
        return entering, residual(reward, here, expected_next(nu, batch), mu, setting.flow)
    size = batch.count
    last = batch.take(jnp.arange(window - 1, size, window))
    observation = jnp.concatenate([batch.observation, last.next_observation, first.observation])
    accrued = jnp.concatenate([batch.accrued, last.next_accrued, first.accrued])
    time = jnp.concatenate([batch.time, last.time + 1, first.time])
    here, beyond, entering = jnp.split(
        jax.vmap(nu)(observation, accrued, time), [size, size + size // window]
    )
    there = jnp.concatenate([here.reshape(-1, window)[:, 1:], beyond[:, None]], axis=1).ravel()
    return entering, residual(reward, here, jnp.where(batch.bootstraps, there, 0), mu, setting.flow)


def augmented_residuals(
    nu: Nu, objective: Objective, batch: Steps, mu: Float[Array, " n"], setting: DualSetting
) -> Float[Array, "batch horizon"]:
    """e of every step as if it had been stored at every time."""
    reward = step_rewards(objective.utility, batch, setting.terminal_reward)
    here = jax.vmap(nu.heads)(batch.observation, batch.accrued)
    there = jax.vmap(nu.heads)(batch.next_observation, batch.next_accrued)
    after = jnp.concatenate([there[:, 1:], jnp.zeros_like(there[:, :1])], axis=1)
    follows = jnp.where(batch.terminated[:, None], 0, after)
    return jax.vmap(residual, in_axes=(None, 1, 1, None, None), out_axes=1)(
        reward, here, follows, mu, setting.flow
    )


def step_rewards(utility: Utility, batch: Steps, terminal: bool) -> Float[Array, "batch n"]:
    """r̃ of every step, or the whole gain at the last one; its mean where transitions are stochastic."""
    if batch.successors is not None:
        return _expected_rewards(utility, batch, terminal)
    if not terminal:
        return transformed_rewards(utility, batch.accrued, batch.next_accrued)
    gain = transformed_rewards(utility, jnp.zeros_like(batch.accrued), batch.next_accrued)
    return jnp.where(batch.bootstraps[:, None], 0, gain)


def _expected_rewards(utility: Utility, batch: Steps, terminal: bool) -> Float[Array, "batch n"]:
    """E[r̃ | s̃, a] over what may follow."""
    after = batch.successors
    assert after is not None

    def one(accrued: Array, reward: Array, follows: Array, probability: Array) -> Array:
        gained = accrued[None] + reward
        before = jnp.broadcast_to(accrued, gained.shape)
        if not terminal:
            return probability @ transformed_rewards(utility, before, gained)
        paid = transformed_rewards(utility, jnp.zeros_like(gained), gained)
        return jnp.where(follows, 0, probability) @ paid

    return jax.vmap(one)(batch.accrued, after.reward, after.follows, after.probability)


def expected_next(
    function: Callable[[Array, Array, Array], Float[Array, "*f"]], batch: Steps
) -> Float[Array, "batch *f"]:
    """E[f(s̃') | s̃, a], f = 0 where nothing follows (D17).

    Of the one recorded successor, or of all that may follow where transitions are stochastic.
    """
    after = batch.successors
    if after is None:
        there = jax.vmap(function)(batch.next_observation, batch.next_accrued, batch.time + 1)
        shape = (-1,) + (1,) * (there.ndim - 1)
        return jnp.where(batch.bootstraps.reshape(shape), there, 0)

    def one(accrued: Array, time: Array, observation: Array, reward: Array, weight: Array) -> Array:
        there = jax.vmap(lambda o, r: function(o, accrued + r, time + 1))(observation, reward)
        return jnp.tensordot(weight, there, 1)

    weight = jnp.where(after.follows, after.probability, 0)
    return jax.vmap(one)(batch.accrued, batch.time, after.observation, after.reward, weight)


def batch_weights(batch: Steps, stored: int, setting: DualSetting) -> Float[Array, "batch times"]:
    """d^D of each step; a mean over the batch times the stored steps estimates the sum over all."""
    size = batch.time.shape[0]
    if isinstance(setting.flow, FiniteHorizon) and setting.time_augmented:
        return jnp.full((size, setting.flow.horizon), 1 / size)
    return setting.flow.transition_weights(batch.weight, stored)[:, None] * (stored / size)


def _attained(
    hyper: DiceHyper, batch: Steps, mass: Float[Array, " batch"], setting: DualSetting
) -> Float[Array, " n"]:
    """F(0) + Σ w d^D r̃."""
    scale = cast(setting.flow.reward_scale, mass)
    utility = hyper.objective.utility
    attained = mass @ step_rewards(utility, batch, setting.terminal_reward)
    return utility(jnp.zeros_like(batch.accrued[0])) + scale * attained
