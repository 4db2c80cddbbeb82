"""D6 of docs/paper.md: exact refit of what ν is linear in, its constants and scale or its last layer.

Given features, be it one (the network's own output) or those of its last hidden layer, and a
constant per time step, ν is linear in what remains and the dual is convex in it: Newton's method
in float64 finds the best over the whole dataset. The constants make every time step conserve its
mass, and the slack becomes what the ratios attain.
"""

from collections.abc import Iterator
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from aetdice.algorithms.dual import DiceHyper, DualSetting, DualState, expected_next, step_rewards
from aetdice.data.device import DeviceData, Recorded, Steps
from aetdice.data.mapping import gather, release, row_blocks, temporary
from aetdice.data.passes import pass_over
from aetdice.data.stored import StoredSteps
from aetdice.exact.differences import TimedDifferences
from aetdice.exact.newton import LinearDual, PartedDual, minimise_dual
from aetdice.networks import Nu
from aetdice.objectives import in_float64

TOLERANCE = 1e-7
MAX_STEPS = 60
SCALE = np.ones((1, 1), np.float32)
"""Of the network's own output, before it is refitted."""
SPOOLED = 1 << 17
"""Steps that Newton's method looks at together where there are more, or where they stay on disk."""


def refit(
    state: DualState, hyper: DiceHyper, data: DeviceData, setting: DualSetting, *, layer: bool
) -> DualState:
    """The averaged ν with its best constants and scale or last `layer`, and the slack that goes with it."""
    if data.steps.count > SPOOLED and not layer:
        return _refit_spooled(state, hyper, _spool(state, hyper, data, setting), data.initial, setting)
    last = state.average.net.weights[-1]
    own = np.asarray(last) if layer else SCALE
    readout = jnp.asarray(np.eye(last.shape[0], dtype=np.float32)) if layer else last
    return _refitted(state, hyper, own, readout, _linear_dual(state.average, readout, hyper, data, setting))


def refit_stored(state: DualState, hyper: DiceHyper, stored: StoredSteps, setting: DualSetting) -> DualState:
    """`refit` of constants and scale over steps that stay on disk: what Newton's method needs is spooled."""
    nu = state.average
    spool = temporary((stored.count, 5 + state.slack.shape[0]), np.float32)
    for part, steps in stored.blocks():
        columns = _some_columns(nu, nu.net.weights[-1], hyper, steps, setting, stored.count)
        spool[part] = _side_by_side(columns)
        release(spool)
    return _refit_spooled(state, hyper, spool, stored.initial, setting)


class _Columns(NamedTuple):
    """What Newton's method needs of steps: features here and on average where they lead, and the rest."""

    here: Float[Array, "steps f"]
    there: Float[Array, "steps f"]
    time: Int[Array, " steps"]
    follows: Float[Array, " steps"]
    """How likely anything does."""
    mass: Float[Array, " steps"]
    """d^D."""
    rewards: Float[Array, "steps n"]
    """r̃."""


def _spool(
    state: DualState, hyper: DiceHyper, data: DeviceData, setting: DualSetting
) -> Float[np.ndarray, "steps c"]:
    """Of steps on the device, a part at a time: members are refitted side by side."""
    nu, count, size = state.average, data.steps.count, min(SPOOLED, data.steps.count)
    spool = np.empty((count, 5 + state.slack.shape[0]), np.float32)
    for place in range(0, count, size):
        first = min(place, count - size)  # parts of one size: each is compiled for
        begin = jnp.asarray(first)
        part = _columns_from(nu, nu.net.weights[-1], hyper, data.steps, setting, begin, size)
        spool[first : first + size] = _side_by_side(part)
    return spool


def _side_by_side(columns: _Columns) -> Float[np.ndarray, "steps c"]:
    return np.concatenate(
        [np.asarray(each, np.float32).reshape(each.shape[0], -1) for each in columns], axis=1
    )


def _refit_spooled(
    state: DualState,
    hyper: DiceHyper,
    spool: Float[np.ndarray, "steps c"],
    first: Int[Array | np.ndarray, " episodes"],
    setting: DualSetting,
) -> DualState:
    nu = state.average
    constants, own = nu.offsets.shape[0], nu.net.weights[-1]
    entering = gather(spool, np.asarray(first))[:, 0].astype(np.float64)
    initial = np.concatenate([[entering.mean()], np.eye(constants)[0]])
    zero = in_float64(hyper.objective.utility)(np.zeros(nu.encoder.accrued_range.shape))
    scale, discount = float(setting.flow.reward_scale), float(setting.flow.discount)

    def load() -> Iterator[LinearDual]:
        for _, rows in row_blocks(spool, SPOOLED):
            here, there, time, follows, mass = rows.T[:5]
            now, then = (np.minimum(t.astype(int), constants - 1) for t in (time, time + 1))
            yield LinearDual(
                differences=TimedDifferences(
                    jnp.asarray(here)[:, None],
                    jnp.asarray(there)[:, None],
                    now,
                    then,
                    discount * follows.astype(np.float64),
                    constants,
                ),
                initial=initial,
                mass=mass.astype(np.float64),
                rewards=scale * rows[:, 5:].astype(np.float64),
                zero_utility=zero,
                aggregation=hyper.objective.aggregation,
                divergence=setting.divergence,
                flow=setting.flow,
            )

    mean = float(np.mean([np.mean(part.mass) for part in load()]))
    dual = PartedDual(
        load, initial, mean, zero, hyper.objective.aggregation, setting.divergence, setting.flow
    )
    return _refitted(state, hyper, SCALE, own, dual)


def _refitted(
    state: DualState,
    hyper: DiceHyper,
    own: Float[np.ndarray, "f 1"],
    readout: Float[Array, "h f"],
    dual: LinearDual | PartedDual,
) -> DualState:
    """The best weights of what is read out, `own` at first, and constants."""
    nu = state.average
    constants = np.asarray(nu.net.biases[-1]) + np.asarray(nu.offsets)
    start = np.concatenate([own[:, 0], constants]).astype(np.float64)
    point = minimise_dual(
        dual,
        float(hyper.beta),
        start,
        np.asarray(state.slack, np.float64),
        anneal=False,
        tolerance=TOLERANCE,
        max_steps=MAX_STEPS,
    )
    best, offsets = np.split(point.parameters.astype(np.float32), [start.size - nu.offsets.shape[0]])
    refitted = eqx.tree_at(
        lambda n: (n.net.weights[-1], n.net.biases[-1], n.offsets),
        nu,
        jax.device_put((np.asarray(readout) @ best[:, None], np.zeros(1, np.float32), offsets)),
    )
    return state._replace(average=refitted, slack=jax.device_put(point.slack.astype(np.float32)))


def _linear_dual(
    nu: Nu, readout: Float[Array, "h f"], hyper: DiceHyper, data: DeviceData, setting: DualSetting
) -> LinearDual:
    """The dual in the weights of what is read out, and in the constants."""
    constants, start = nu.offsets.shape[0], jnp.asarray(0)
    steps = _columns_from(nu, readout, hyper, data.steps, setting, start, data.steps.count)
    discount, time = float(setting.flow.discount), np.asarray(steps.time)
    now, then = (np.minimum(t, constants - 1) for t in (time, time + 1))
    follows, mass, rewards = (np.asarray(each, np.float64) for each in steps[3:])
    first = np.asarray(data.initial)
    features = np.asarray(steps.here)[first].astype(np.float64)
    indicators = np.bincount(now[first], minlength=constants) / first.size
    return LinearDual(
        differences=TimedDifferences(steps.here, steps.there, now, then, discount * follows, constants),
        initial=np.concatenate([features.mean(axis=0), indicators]),
        mass=mass,
        rewards=float(setting.flow.reward_scale) * rewards,
        zero_utility=in_float64(hyper.objective.utility)(np.zeros(data.steps.accrued.shape[1])),
        aggregation=hyper.objective.aggregation,
        divergence=setting.divergence,
        flow=setting.flow,
    )


@eqx.filter_jit
def _columns_from(
    nu: Nu,
    readout: Float[Array, "h f"],
    hyper: DiceHyper,
    steps: Recorded,
    setting: DualSetting,
    first: Int[Array, ""],
    count: int,
) -> _Columns:
    """Of so many steps from the first on."""

    def look(rows: Int[Array, " block"], counted: Bool[Array, " block"]) -> tuple[tuple[()], _Columns]:
        del counted
        return (), _columns(nu, readout, hyper, steps.take(first + rows), setting, steps.count)

    columns: _Columns = pass_over(count, look)[1]
    return columns


@eqx.filter_jit
def _some_columns(
    nu: Nu,
    readout: Float[Array, "h f"],
    hyper: DiceHyper,
    steps: Recorded,
    setting: DualSetting,
    stored: int,
) -> _Columns:
    return _columns(nu, readout, hyper, steps.everything(), setting, stored)


def _columns(
    nu: Nu,
    readout: Float[Array, "h f"],
    hyper: DiceHyper,
    steps: Steps,
    setting: DualSetting,
    stored: int,
) -> _Columns:
    def features(observation: Array, accrued: Array, time: Array) -> Array:
        return nu.net.hidden(nu.encoder(observation, accrued, time)) @ readout

    follows = steps.follows
    there = expected_next(features, steps) / jnp.where(follows > 0, follows, 1)[:, None]
    return _Columns(
        jax.vmap(features)(steps.observation, steps.accrued, steps.time),
        there,
        steps.time,
        follows,
        setting.flow.transition_weights(steps.weight, stored),
        step_rewards(hyper.objective.utility, steps, setting.terminal_reward),
    )
