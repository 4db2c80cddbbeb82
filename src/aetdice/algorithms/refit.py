"""D6 of docs/paper.md: exact refit of what ν is linear in, its constants and scale or its last layer.

Given features, be it one (the network's own output) or those of its last hidden layer, and a
constant per time step, ν is linear in what remains and the dual is convex in it: Newton's method
in float64 finds the best over the whole dataset. The constants make every time step conserve its
mass, and the slack becomes what the ratios attain.
"""

from collections.abc import Iterator

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from aetdice.algorithms.dual import DiceHyper, DualSetting, DualState, expected_next, step_rewards
from aetdice.data.device import DeviceData, Steps, blocks
from aetdice.data.mapping import release, row_blocks, temporary
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
"""Steps that Newton's method looks at together where they stay on disk."""


def refit(
    state: DualState, hyper: DiceHyper, data: DeviceData, setting: DualSetting, *, layer: bool
) -> DualState:
    """The averaged ν with its best constants and scale or last `layer`, and the slack that goes with it."""
    last = state.average.net.weights[-1]
    own = np.asarray(last) if layer else SCALE
    readout = jnp.asarray(np.eye(last.shape[0], dtype=np.float32)) if layer else last
    return _refitted(state, hyper, own, readout, _linear_dual(state.average, readout, hyper, data, setting))


def refit_stored(state: DualState, hyper: DiceHyper, stored: StoredSteps, setting: DualSetting) -> DualState:
    """`refit` of constants and scale over steps that stay on disk: what Newton's method needs is spooled."""
    nu = state.average
    readout = nu.net.weights[-1]
    constants, objectives = nu.offsets.shape[0], state.slack.shape[0]
    spool = temporary((stored.count, 5 + objectives), np.float32)
    for part, steps in stored.blocks():
        here, there = (f.reshape(-1)[: steps.count] for f in _features(nu, steps, readout))
        mass, follows, rewards = _weighed(hyper, steps, setting)
        columns = (here, there, steps.time, follows, mass, *np.asarray(rewards).T)
        spool[part] = np.stack([np.asarray(column, np.float32) for column in columns], axis=1)
        release(spool)
    entering = [
        np.asarray(_features(nu, first, readout)[0].reshape(-1)[: first.count], np.float64)
        for first in stored.starts()
    ]
    initial = np.concatenate([[np.concatenate(entering).mean()], np.eye(constants)[0]])
    zero = in_float64(hyper.objective.utility)(np.zeros(stored.accrued.shape[1]))
    scale, discount = float(setting.flow.reward_scale), float(setting.flow.discount)

    def load() -> Iterator[LinearDual]:
        for _, rows in row_blocks(spool, SPOOLED):
            here, there, time, follows, mass = rows.T[:5]
            now, then = (np.minimum(t.astype(int), constants - 1) for t in (time, time + 1))
            yield LinearDual(
                differences=TimedDifferences(
                    jnp.asarray(here)[None, :, None],
                    jnp.asarray(there)[None, :, None],
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
    return _refitted(state, hyper, SCALE, readout, dual)


@eqx.filter_jit
def _weighed(
    hyper: DiceHyper, steps: Steps, setting: DualSetting
) -> tuple[Float[Array, " steps"], Float[Array, " steps"], Float[Array, "steps n"]]:
    """d^D of every step, how likely anything follows it, and its r̃."""
    rewards = step_rewards(hyper.objective.utility, steps, setting.terminal_reward)
    return setting.flow.transition_weights(steps.weight, steps.count), steps.follows, rewards


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
    constants = nu.offsets.shape[0]
    here, there = _features(nu, data.steps, readout)
    discount, time = float(setting.flow.discount), np.asarray(data.steps.time)
    now, then = (np.minimum(t, constants - 1) for t in (time, time + 1))
    mass, follows, rewards = (np.asarray(each, np.float64) for each in _weighed(hyper, data.steps, setting))
    return LinearDual(
        differences=TimedDifferences(here, there, now, then, discount * follows, constants),
        initial=_initial(here, data, now, constants),
        mass=mass,
        rewards=float(setting.flow.reward_scale) * rewards,
        zero_utility=in_float64(hyper.objective.utility)(np.zeros(data.steps.accrued.shape[1])),
        aggregation=hyper.objective.aggregation,
        divergence=setting.divergence,
        flow=setting.flow,
    )


def _initial(
    here: Float[Array, "blocks block f"], data: DeviceData, now: Int[np.ndarray, " steps"], constants: int
) -> Float[np.ndarray, " p"]:
    """E[φ(s̃_0)], the indicators of the constants included."""
    first = np.asarray(data.initial)
    features = np.asarray(here).reshape(-1, here.shape[-1])[first].astype(np.float64)
    return np.concatenate([features.mean(axis=0), np.bincount(now[first], minlength=constants) / first.size])


@eqx.filter_jit
def _features(
    nu: Nu, steps: Steps, readout: Float[Array, "h f"]
) -> tuple[Float[Array, "blocks block f"], Float[Array, "blocks block f"]]:
    """What is read out of the last hidden layer at every state, and on average where it leads."""

    def features(observation: Array, accrued: Array, time: Array) -> Array:
        return nu.net.hidden(nu.encoder(observation, accrued, time)) @ readout

    def both(block: Steps) -> tuple[Array, Array]:
        here = jax.vmap(features)(block.observation, block.accrued, block.time)
        follows = block.follows[:, None]
        return here, expected_next(features, block) / jnp.where(follows > 0, follows, 1)

    return jax.lax.map(both, blocks(steps))
