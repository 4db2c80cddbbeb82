"""D8 of docs/paper.md: ratios from n-step residuals, for data whose paths do not merge.

Over n steps residuals add up to μ·(what they pay) + ν(where they lead) - ν(here): all that ν says on
the way cancels. Where no two episodes meet, the optimal ratio is the same all along an episode, so
the mean residual tells it as well as each of them, and is free of the errors of ν from step to step,
which over a small β would drown it.
"""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from aetdice.algorithms.dual import DualSetting, step_rewards
from aetdice.data.device import DeviceData, Steps, blocks
from aetdice.dice import ratio, residual
from aetdice.networks import Nu
from aetdice.objectives import Objective
from aetdice.objectives.parameters import Parameter, cast

CANDIDATES, ROUNDS = 32, 5
"""Shifts tried at once, and how often between the two best: 2²⁵ in all."""
HARDLY_ANY = -20.0
"""e/β of a ratio that is nearly zero, whatever the divergence."""


class Segments(NamedTuple):
    """The n steps that begin with each step, fewer where its episode ends before."""

    last: Int[Array, " steps"]
    """The row of the last of them."""
    length: Float[Array, " steps"]


def segments(data: DeviceData, n_step: int) -> Segments:
    """From every step on, itself included."""
    rows = jnp.arange(data.steps.count)
    ends = jnp.append(data.initial[1:], data.steps.count)
    last = jnp.minimum(rows + n_step - 1, ends[jnp.searchsorted(data.initial, rows, side="right") - 1] - 1)
    return Segments(last, (last - rows + 1).astype(data.steps.accrued.dtype))


def mean_residuals(
    nu: Nu,
    objective: Objective,
    data: DeviceData,
    segments: Segments,
    mu: Float[Array, " n"],
    setting: DualSetting,
) -> Float[Array, " steps"]:
    """e of each segment, divided by its length."""

    def values(block: Steps) -> tuple[Float[Array, " block"], Float[Array, " block"]]:
        here = jax.vmap(nu)(block.observation, block.accrued, block.time)
        return here, jax.vmap(nu)(block.next_observation, block.next_accrued, block.time + 1)

    steps = data.steps
    here, there = (each.reshape(-1)[: steps.count] for each in jax.lax.map(values, blocks(steps)))
    last = steps.take(segments.last)
    paid = step_rewards(
        objective.utility,
        replace(steps, next_accrued=last.next_accrued, bootstraps=last.bootstraps),
        setting,
    )
    beyond = jnp.where(last.bootstraps, there[segments.last], 0)
    return residual(paid, here, beyond, mu, setting.flow) / segments.length


def conserving_ratios(
    residuals: Float[Array, " steps"],
    length: Float[Array, " steps"],
    beta: Parameter,
    data: DeviceData,
    horizon: int,
    setting: DualSetting,
) -> Float[Array, " steps"]:
    """Ratios of mean residuals, ν of every time step moved by the constant that conserves its mass."""
    steps, episodes = data.steps, data.initial.shape[0]
    by_time = jnp.argsort(steps.time, stable=True)
    counts = jnp.bincount(steps.time, length=horizon)
    beta = cast(beta, residuals)

    def conserve(
        expected: Float[Array, ""], slot: tuple[Int[Array, ""], Int[Array, ""]]
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        start, count = slot
        rows = by_time[jnp.minimum(start + jnp.arange(episodes), steps.count - 1)]
        there = jnp.arange(episodes) < count
        e, n = residuals[rows], length[rows]
        weight = jnp.where(there, steps.weight[rows], 0)

        def mass(shift: Float[Array, ""]) -> Float[Array, " episodes"]:
            return weight * ratio(e + shift / n, beta, setting.divergence)

        def narrow(bounds: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
            tried = jnp.linspace(*bounds, CANDIDATES + 1)
            short = jnp.sum(jax.vmap(lambda shift: jnp.sum(mass(shift)))(tried) < expected)
            above = jnp.clip(short, 1, CANDIDATES)
            return (tried[above - 1], tried[above]), None

        least = jnp.min(n * (HARDLY_ANY * beta - e), where=there, initial=jnp.inf)
        most = jnp.max(n * (episodes * beta - e), where=there, initial=-jnp.inf)
        bounds = (jnp.where(count > 0, least, 0), jnp.where(count > 0, most, 0))
        (_, shift), _ = jax.lax.scan(narrow, bounds, None, ROUNDS)
        return expected - jnp.sum(jnp.where(steps.terminated[rows], mass(shift), 0)), shift

    slots = (jnp.cumsum(counts) - counts, counts)
    _, shifts = jax.lax.scan(conserve, jnp.ones((), residuals.dtype), slots)
    return ratio(residuals + shifts[steps.time] / length, beta, setting.divergence)
