"""The passes of an algorithm over all steps of a dataset that stays on disk, block by block."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from aetdice.algorithms.base import Algorithm
from aetdice.algorithms.cloning import Cloning
from aetdice.algorithms.diagnostics import StartMeans, assemble, merge, ratios_of, start_means
from aetdice.algorithms.dice import Dice, metrics_of
from aetdice.algorithms.dual import DiceHyper, DualState, gained_utilities
from aetdice.algorithms.episode_weighting import EpisodeWeighting
from aetdice.algorithms.refit import refit_stored
from aetdice.data.device import Recorded
from aetdice.data.mapping import release, temporary
from aetdice.data.stored import StoredSteps
from aetdice.dice import FiniteHorizon
from aetdice.errors import InputError


class StoredWeighing(NamedTuple):
    """A weighing whose sample weights are in a temporary file."""

    weights: Float[np.ndarray, " steps"]
    metrics: dict[str, Array]


def check_streams(algorithm: Algorithm) -> None:
    """`InputError` if an algorithm has to have all steps in memory."""
    if isinstance(algorithm, Cloning):
        return
    if isinstance(algorithm, EpisodeWeighting):
        raise InputError("whole episodes are weighed in memory; with beta given, single steps are on disk")
    if not isinstance(algorithm, Dice) or not isinstance(algorithm.setting.flow, FiniteHorizon):
        raise InputError("only aetdice and bc learn from data that stays on disk")
    if algorithm.n_step != 1:
        raise InputError("n-step transitions are not learned from data that stays on disk; dual.n_step=1 is")
    if algorithm.heads > 1 or algorithm.setting.config.refit == "layer":
        raise InputError("ablation.time and dual.refit=layer need all data in memory")


def start_stored(algorithm: Algorithm, state: Any, hyper: Any, stored: StoredSteps) -> Any:
    """A state that was begun on some of the steps, as all of them would have it."""
    if not isinstance(algorithm, Dice):
        return state
    zero = np.asarray(hyper.objective.utility(jnp.zeros(stored.accrued.shape[1])), np.float64)
    gained = np.zeros_like(zero)
    for _, steps in stored.blocks():
        gained += np.asarray(_gained(algorithm, hyper, steps, stored.count), np.float64)
    return state._replace(slack=jnp.asarray(zero + gained, jnp.float32))


def finish_stored(algorithm: Algorithm, state: Any, hyper: Any, stored: StoredSteps) -> Any:
    """What follows the last update."""
    if not isinstance(algorithm, Dice) or algorithm.setting.config.refit == "none":
        return state
    return refit_stored(state, hyper, stored, algorithm.setting)


def weigh_stored(algorithm: Algorithm, state: Any, hyper: Any, stored: StoredSteps) -> StoredWeighing:
    """Sample weights and metrics over all steps; sums of sums in float64."""
    if not isinstance(algorithm, Dice):
        return StoredWeighing(stored.behaviour(), {})
    weights = temporary((stored.count,), np.float32)
    flow, sums = algorithm.setting.flow, None
    for part, steps in stored.blocks():
        mass, added = _sums(algorithm, state, hyper, steps, stored.count)
        weights[part] = np.asarray(mass)
        release(weights)
        added = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), added)
        sums = added if sums is None else merge(sums, added)
    sums = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), sums)
    factors = np.asarray(flow.factors(sums.total, sums.ended))
    for part in stored.parts():
        weights[part] *= factors[stored.time(np.arange(part.start, part.stop))]
        release(weights)
    means = [(first.count, _start_means(algorithm, state, first)) for first in stored.starts()]
    count = sum(count for count, _ in means)
    starts = jax.tree.map(
        lambda *leaves: sum(n / count * leaf for (n, _), leaf in zip(means, leaves, strict=True)),
        *(mean for _, mean in means),
    )
    return StoredWeighing(weights, _assembled(algorithm, state, hyper, sums, starts))


@eqx.filter_jit
def _gained(algorithm: Dice, hyper: DiceHyper, steps: Recorded, stored: int) -> Float[Array, " n"]:
    return gained_utilities(hyper, steps.everything(), jnp.ones(steps.count, bool), stored, algorithm.setting)


@eqx.filter_jit
def _sums(
    algorithm: Dice, state: DualState, hyper: DiceHyper, steps: Recorded, stored: int
) -> tuple[Array, Any]:
    look = ratios_of(state, hyper, stored, algorithm.setting)
    return look(steps.everything(), jnp.ones(steps.count, bool))[1:]


@eqx.filter_jit
def _start_means(algorithm: Dice, state: DualState, first: Recorded) -> StartMeans:
    del algorithm
    return start_means(state, first.everything())


@eqx.filter_jit
def _assembled(
    algorithm: Dice, state: DualState, hyper: DiceHyper, sums: Any, starts: StartMeans
) -> dict[str, Array]:
    none = jnp.zeros(0)
    setting = algorithm.setting
    return metrics_of(assemble(state, hyper, sums, starts, setting, none, none, none.astype(jnp.int32)))
