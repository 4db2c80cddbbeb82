"""The dual stage of AETDICE and its relatives: ν and the slack k, down the one dual loss.

The tags D3, D4, D5 and D7 below are deviations from the paper's Algorithm 1: docs/paper.md has them all.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from aetdice.algorithms.optimiser import Moments, Pace, average, cosine, descend, no_moments, pace
from aetdice.config import DualConfig
from aetdice.data import transformed_rewards
from aetdice.data.device import DeviceData, Recorded, Steps, Successors
from aetdice.data.passes import pass_over
from aetdice.dice import FiniteHorizon, Flow, dual_loss, ratio, residual
from aetdice.networks import Encoder, Nu, Perceptron, products_are_rounded
from aetdice.objectives import Divergence, Objective, Utility, multiplier
from aetdice.objectives.parameters import Parameter, cast, parameter

SHOWN_MOST = 4096.0
"""Of features in float16, which ends at 65504: sums over layers need room above what they are made of."""


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
    """ν, the moments of its gradient, its average, and the slack k."""

    nu: Nu
    moments: Moments
    average: Nu
    slack: Float[Array, " n"]


class DualBatch(eqx.Module):
    """What an update needs of its rows and of its number: nothing in it changes with ν.

    D7: the batch is made of windows of consecutive steps, so only the last of each needs ν of its
    successor; where an episode ends inside a window nothing follows, and the next step is not used.
    """

    encoded: Float[Array, "states f"]
    """Of the steps, then of what comes after each window, then of initial states."""
    time: Int[Array, " states"]
    rewards: Float[Array, "batch n"]
    """r̃."""
    weights: Float[Array, "batch times"]
    follows: Bool[Array, " batch"]
    """Whether ν of the next state counts."""
    zero_utility: Float[Array, " n"]
    beta: Float[Array, ""]
    pace: Pace
    decay: Float[Array, ""]
    """Of ν's average."""
    after: "EncodedSuccessors | None"
    window: int = eqx.field(static=True)


class EncodedSuccessors(eqx.Module):
    """All that may follow each step, where transitions are stochastic."""

    encoded: Float[Array, "batch k f"]
    weight: Float[Array, "batch k"]
    """How likely it is, 0 where an episode ends."""


def init_dual(nu: Nu, hyper: DiceHyper, data: DeviceData, setting: DualSetting) -> DualState:
    """The slack starts at the behaviour's own expected utilities."""
    slack = behaviour_utilities(hyper, data.steps, setting)
    return DualState(nu, no_moments(nu.trained), nu, slack)


def behaviour_utilities(hyper: DiceHyper, steps: Recorded, setting: DualSetting) -> Float[Array, " n"]:
    """F(0) + Σ d^D r̃."""

    def look(rows: Int[Array, " block"], counted: Bool[Array, " block"]) -> tuple[Array, None]:
        return gained_utilities(hyper, steps.take(rows), counted, steps.count, setting), None

    zero = hyper.objective.utility(jnp.zeros_like(steps.accrued[0]))
    return zero + pass_over(steps.count, look)[0]


def gained_utilities(
    hyper: DiceHyper, steps: Steps, counted: Bool[Array, " steps"], stored: int, setting: DualSetting
) -> Float[Array, " n"]:
    """Σ d^D r̃ of some of the stored steps."""
    mass = jnp.where(counted, setting.flow.transition_weights(steps.weight, stored), 0)
    rewards = step_rewards(hyper.objective.utility, steps, setting.terminal_reward)
    return _gained(mass, rewards, setting)


def prepare_dual(
    encoder: Encoder,
    hyper: DiceHyper,
    data: DeviceData,
    rows: Int[Array, "windows length"],
    starts: Int[Array, " starts"],
    step: Float[Array, ""],
    setting: DualSetting,
) -> DualBatch:
    """The rows of an update, gathered and encoded."""
    steps, first, window = data.steps.take(rows.ravel()), data.steps.take(starts), rows.shape[1]
    after, places = steps.successors, [(steps.observation, steps.accrued, steps.time)]
    if after is None:
        last = steps.take(jnp.arange(window - 1, steps.count, window))
        places.append((last.next_observation, last.next_accrued, last.time + 1))
    places.append((first.observation, first.accrued, first.time))
    observation, accrued, time = (jnp.concatenate(parts) for parts in zip(*places, strict=True))
    progress = step / setting.config.steps
    beta, utility = annealed_beta(hyper, progress, setting), hyper.objective.utility
    return DualBatch(
        encoded=_as_shown(jax.vmap(encoder)(observation, accrued, time)),
        time=time,
        rewards=step_rewards(utility, steps, setting.terminal_reward),
        weights=batch_weights(steps, data.count, setting),
        follows=~steps.terminated if setting.time_augmented else steps.bootstraps,
        zero_utility=utility(jnp.zeros_like(steps.accrued[0])),
        beta=beta,
        pace=pace(cast(hyper.learning_rate, beta) * cosine(progress), step),
        # D4: the ratios will come from an average of ν, since w is e divided by a small β.
        decay=jnp.minimum(cast(hyper.averaging, beta), (1 + step) / (10 + step)),
        after=None if after is None else _encoded_successors(encoder, steps, after),
        window=window,
    )


def _encoded_successors(encoder: Encoder, steps: Steps, after: Successors) -> EncodedSuccessors:
    def one(accrued: Array, time: Array, observation: Array, reward: Array) -> Array:
        return jax.vmap(lambda o, r: encoder(o, accrued + r, time + 1))(observation, reward)

    encoded = jax.vmap(one)(steps.accrued, steps.time, after.observation, after.reward)
    return EncodedSuccessors(_as_shown(encoded), jnp.where(after.follows, after.probability, 0))


def _as_shown(encoded: Float[Array, "*rows f"]) -> Float[Array, "*rows f"]:
    """In the precision of products: half of it has TF32's digits, and moves half of its bytes.

    Ratios are differences of ν over a small β, so bfloat16 is too coarse for what ν sees.
    """
    if not products_are_rounded():
        return encoded
    return jnp.clip(encoded, -SHOWN_MOST, SHOWN_MOST).astype(jnp.float16)


def update_dual(state: DualState, hyper: DiceHyper, batch: DualBatch, setting: DualSetting) -> DualState:
    """One step of ν down the dual loss, and of k towards the utilities that the ratios attain."""
    mu = multiplier(hyper.objective.aggregation, state.slack)
    starts = batch.time.shape[0] - _windows_end(batch)

    def loss(
        trained: tuple[Perceptron, Float[Array, " constants"]],
    ) -> tuple[Float[Array, ""], Float[Array, "batch times"]]:
        nu = state.nu.with_trained(trained)
        if setting.time_augmented:
            entering, residuals = augmented_residuals(nu, batch, mu, setting)
        else:
            entering, single = entering_and_residuals(nu, batch, mu, setting)
            residuals = single[:, None]
        value = dual_loss(
            entering,
            residuals.ravel(),
            state.slack,
            batch.zero_utility,
            initial_weights=jnp.full(starts, 1 / starts),
            weights=batch.weights.ravel(),
            beta=batch.beta,
            divergence=setting.divergence,
            aggregation=hyper.objective.aggregation,
            flow=setting.flow,
        )
        return value, residuals

    gradient, residuals = jax.grad(loss, has_aux=True)(state.nu.trained)
    trained, moments = descend(state.nu.trained, gradient, state.moments, batch.pace)
    smooth = average(state.average.trained, trained, batch.decay)
    w = ratio(residuals.ravel(), batch.beta, setting.divergence).reshape(residuals.shape)
    attained = batch.zero_utility + _gained(jnp.sum(batch.weights * w, axis=1), batch.rewards, setting)
    # D5: towards the attained utilities; the plain gradient is ∇²G times that, dead where G is linear.
    slack = state.slack + cast(hyper.slack_rate, batch.beta) * (attained - state.slack)
    return DualState(state.nu.with_trained(trained), moments, state.average.with_trained(smooth), slack)


def annealed_beta(hyper: DiceHyper, progress: Float[Array, ""], setting: DualSetting) -> Float[Array, ""]:
    """D3: β₀^(1-s) β^s with s from 0 to 1 over the first part of training."""
    beta = cast(hyper.beta, progress)
    first = jnp.maximum(cast(hyper.first_beta, progress), beta)
    return first * (beta / first) ** jnp.clip(progress / setting.config.annealing, 0, 1)


def step_residuals(
    nu: Callable[[Array, Array, Array], Float[Array, ""]],
    objective: Objective,
    steps: Steps,
    mu: Float[Array, " n"],
    setting: DualSetting,
) -> Float[Array, " batch"]:
    """e of every step at its own time."""
    reward = step_rewards(objective.utility, steps, setting.terminal_reward)
    here = jax.vmap(nu)(steps.observation, steps.accrued, steps.time)
    return residual(reward, here, expected_next(nu, steps), mu, setting.flow)


def entering_and_residuals(
    nu: Nu, batch: DualBatch, mu: Float[Array, " n"], setting: DualSetting
) -> tuple[Float[Array, " starts"], Float[Array, " batch"]]:
    """ν where episodes start, and e of every step: one pass through the network for all of it."""
    size, window = batch.rewards.shape[0], batch.window
    values = nu.of_encoded(batch.encoded, batch.time)
    here, beyond, entering = jnp.split(values, [size, _windows_end(batch)])
    if batch.after is None:
        there = jnp.concatenate([here.reshape(-1, window)[:, 1:], beyond[:, None]], axis=1).ravel()
        there = jnp.where(batch.follows, there, 0)
    else:
        after = batch.after.encoded
        following = nu.of_encoded(after, jnp.broadcast_to(batch.time[:size, None] + 1, after.shape[:2]))
        there = jnp.sum(batch.after.weight * following, axis=1)
    return entering, residual(batch.rewards, here, there, mu, setting.flow)


def _windows_end(batch: DualBatch) -> int:
    """Where initial states begin among the encoded ones."""
    size = batch.rewards.shape[0]
    return size + (size // batch.window if batch.after is None else 0)


def augmented_residuals(
    nu: Nu, batch: DualBatch, mu: Float[Array, " n"], setting: DualSetting
) -> tuple[Float[Array, " starts"], Float[Array, "batch horizon"]]:
    """ν where episodes start, and e of every step as if it had been stored at every time."""
    size = batch.rewards.shape[0]
    here, there, first = jnp.split(nu.heads(batch.encoded), [size, 2 * size])
    after = jnp.concatenate([there[:, 1:], jnp.zeros_like(there[:, :1])], axis=1)
    residuals = jax.vmap(residual, in_axes=(None, 1, 1, None, None), out_axes=1)(
        batch.rewards, here, jnp.where(batch.follows[:, None], after, 0), mu, setting.flow
    )
    return first[:, 0], residuals


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


def _gained(
    mass: Float[Array, " batch"], rewards: Float[Array, "batch n"], setting: DualSetting
) -> Float[Array, " n"]:
    """Σ w d^D r̃."""
    return cast(setting.flow.reward_scale, mass) * (mass @ rewards)
