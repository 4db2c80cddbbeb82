"""A population: members that differ in traced values only, trained together in one program."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped, UInt32

from aetdice.algorithms.base import Algorithm
from aetdice.algorithms.cloning import (
    CloningBatch,
    CloningState,
    cloning_loss,
    init_cloning,
    prepare_cloning,
    update_cloning,
)
from aetdice.algorithms.optimiser import Moments, cosine, pace
from aetdice.algorithms.sampling import SampleWeights, Shown, sample_bits
from aetdice.config import ExtractionConfig
from aetdice.data.device import DeviceData, Recorded
from aetdice.data.passes import pass_over
from aetdice.learning.devices import over_devices, split_rows
from aetdice.learning.programs import in_place
from aetdice.networks import Encoder, PolicyHead, PolicyNetwork, products_are_rounded

T = TypeVar("T")

PREPARED_BYTES = (1 << 25, 1 << 22)
"""Of batches that are prepared at once: on an accelerator, and what a CPU's caches hold."""

UNROLLED = 5
"""Updates in one round of a GPU's loop: between rounds it copies what the next one reads."""


def stack(members: Sequence[T]) -> T:
    """Members side by side along a first axis, in float32 and int32."""
    return jax.device_put(
        jax.tree.map(lambda *leaves: np.stack([_compact(leaf) for leaf in leaves]), *members)
    )


def member(population: T, index: int) -> T:
    """One member of a population."""
    arrays, rest = eqx.partition(population, eqx.is_array)
    return eqx.combine(_entries(arrays, index), rest)


@jax.jit
def _entries(arrays: T, index: Int[Array, ""]) -> T:
    """One program for all leaves and members: to compile a slice of every shape takes seconds."""
    return jax.tree.map(lambda leaf: leaf[index], arrays)


def _compact(leaf: Any) -> Shaped[np.ndarray, "..."]:
    """On the host, where nothing is compiled."""
    array = np.asarray(leaf)
    return array.astype(np.float32) if jnp.issubdtype(array.dtype, jnp.floating) else array


@eqx.filter_jit
def start_values(
    algorithm: Algorithm, encoder: Encoder, hypers: Any, seeds: Int[Array, " members"], data: DeviceData
) -> Any:
    """Fresh states of the first stage; a member's depends on its own seed alone."""

    def start(hyper: Any, seed: Int[Array, ""]) -> Any:
        return algorithm.init(encoder, hyper, data, _key(seed, 0))

    return eqx.filter_vmap(start)(hypers, seeds)


@eqx.filter_jit
def start_policies(
    encoder: Encoder,
    head: PolicyHead,
    hidden: tuple[int, ...],
    seeds: Int[Array, " members"],
    courses: int = 1,
) -> CloningState:
    """Fresh policies."""

    def start(seed: Int[Array, ""]) -> CloningState:
        return init_cloning(PolicyNetwork(encoder, head, hidden, _key(seed, 1), courses))

    return eqx.filter_vmap(start)(seeds)


@in_place
def train_values(
    states: Any,
    algorithm: Algorithm,
    hypers: Any,
    seeds: Int[Array, " members"],
    data: DeviceData,
    steps: Int[Array, " chunk"],
) -> Any:
    """A chunk of first-stage updates for every member; the batch of a step depends on seed and step."""

    def update(
        states: Any, hypers: Any, seeds: Any, algorithm: Algorithm, data: DeviceData, steps: Any
    ) -> Any:
        drawn = _drawn_values(algorithm, seeds, data, steps)
        return _updated_values(algorithm, states, hypers, data, drawn, steps, algorithm.batch)

    return over_devices(update, (states, hypers, seeds), (algorithm, data, steps), batch=algorithm.batch)


@eqx.filter_jit
def draw_values(
    algorithm: Algorithm, seeds: Int[Array, " members"], data: DeviceData, steps: Int[Array, " chunk"]
) -> Any:
    """The rows that `train_values` looks at, by step and member."""
    return _drawn_values(algorithm, seeds, data, steps)


@in_place
def update_values(
    states: Any, algorithm: Algorithm, hypers: Any, data: DeviceData, drawn: Any, steps: Int[Array, " chunk"]
) -> Any:
    """`train_values` on rows that were drawn before, on one device."""
    return _updated_values(algorithm, states, hypers, data, drawn, steps, 0)


def _drawn_values(
    algorithm: Algorithm, seeds: Int[Array, " members"], data: DeviceData, steps: Int[Array, " chunk"]
) -> Any:
    """By step and member: drawn at once, since many small draws are slow."""

    def draw(step: Int[Array, ""], seed: Int[Array, ""]) -> Any:
        return algorithm.draw(jax.random.fold_in(_key(seed, 2), step), data)

    return jax.vmap(lambda step: jax.vmap(lambda seed: draw(step, seed))(seeds))(steps)


def _updated_values(
    algorithm: Algorithm,
    states: Any,
    hypers: Any,
    data: DeviceData,
    drawn: Any,
    steps: Int[Array, " chunk"],
    rows: int,
) -> Any:
    def prepare(state: Any, hyper: Any, rows: Any, step: Int[Array, ""]) -> Any:
        return algorithm.prepare(state, hyper, data, rows, step)

    return _scan(prepare, algorithm.update, states, hypers, drawn, steps, rows)


@eqx.filter_jit
def value_metrics(algorithm: Algorithm, states: Any, hypers: Any, data: DeviceData) -> dict[str, Array]:
    """Every member's metrics on a dataset."""

    def metrics(states: Any, hypers: Any, algorithm: Algorithm, data: DeviceData) -> dict[str, Array]:
        def of(each: tuple[Any, Any]) -> dict[str, Array]:
            return algorithm.weigh(*each, data).metrics

        return _in_turn(of, (states, hypers))

    return over_devices(metrics, (states, hypers), (algorithm, data))


@eqx.filter_jit
def draw_policy(
    weights: SampleWeights, seed: Int[Array, ""], steps: Int[Array, " chunk"], batch: int
) -> Shown:
    """What a policy is shown in each of these updates."""
    return weights.drawn_by(_bits(seed, steps, batch))


@eqx.filter_jit
def bits_of_policy(
    seed: Int[Array, ""], steps: Int[Array, " chunk"], batch: int
) -> UInt32[Array, "chunk batch"]:
    """The numbers by which `draw_policy` draws."""
    return _bits(seed, steps, batch)


def _bits(seed: Int[Array, ""], steps: Int[Array, " chunk"], batch: int) -> UInt32[Array, "chunk batch"]:
    return jax.vmap(lambda step: sample_bits(_cloning_key(seed, step), batch))(steps)


def _cloning_key(seed: Int[Array, ""], step: Int[Array, ""]) -> PRNGKeyArray:
    return jax.random.fold_in(_key(seed, 3), step)


@in_place
def train_policies(
    states: CloningState,
    shown: Shown,
    learning_rates: Float[Array, " members"],
    seeds: Int[Array, " members"],
    data: DeviceData,
    steps: Int[Array, " chunk"],
    config: ExtractionConfig,
) -> CloningState:
    """A chunk of cloning updates for every policy, on what it is `shown`: members × chunk × batch."""

    def update(
        states: Any, own: tuple[Array, Array], shown: Shown, data: DeviceData, steps: Any
    ) -> CloningState:
        def prepare(state: Any, own: tuple[Array, Array], shown: Shown, step: Array) -> CloningBatch:
            (rate, seed), number = own, step.astype(jnp.float32)
            counts = jnp.ones(shown.rows.shape) if shown.counts is None else jnp.asarray(shown.counts)
            courses = None if shown.courses is None else jnp.asarray(shown.courses, jnp.int32)
            now = pace(rate * cosine(number / config.steps), number)
            key = jax.random.fold_in(_cloning_key(seed, step), 1)
            batch = data.steps.take(jnp.asarray(shown.rows))
            return prepare_cloning(state.policy, batch, counts, courses, now, config.dropout, key)

        def one(state: CloningState, own: Any, batch: CloningBatch) -> CloningState:
            del own
            return update_cloning(state, batch)

        rows = shown.rows.shape[-1]
        return cast(CloningState, _scan(prepare, one, states, own, _by_step(shown), steps, rows))

    own = (learning_rates, seeds)
    return over_devices(update, (states, own, shown), (data, steps), batch=shown.rows.shape[-1])


@eqx.filter_jit
def fit_of_policies(states: CloningState, data: DeviceData) -> Float[Array, " members"]:
    """E[log π(a|s̃)] of every policy over a dataset."""

    def fits(states: CloningState, data: DeviceData) -> Float[Array, " members"]:
        return _in_turn(lambda state: _fit(state.policy, data.steps), states)

    return over_devices(fits, (states,), (data,))


def _fit(policy: PolicyNetwork, steps: Recorded) -> Float[Array, ""]:
    mean = jnp.mean(steps.weight)

    def look(rows: Int[Array, " block"], counted: Bool[Array, " block"]) -> tuple[Array, None]:
        batch = steps.take(rows)
        weight = jnp.where(counted, batch.weight / mean, 0)
        return -cloning_loss(policy, batch, weight) * rows.size, None

    return pass_over(steps.count, look)[0] / steps.count


def _in_turn(function: Callable[[Any], T], members: Any) -> T:
    """Of every member, one after the other: together their passes would take memory for each."""
    arrays, rest = eqx.partition(members, eqx.is_array)
    return jax.lax.map(lambda own: function(eqx.combine(own, rest)), arrays)


def _by_step(drawn: T) -> T:
    """By step and member what was drawn by member and step."""
    return jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), drawn)


def _scan(
    prepare: Any,
    update: Any,
    states: Any,
    each: Any,
    drawn: Any,
    steps: Int[Array, " chunk"],
    rows: int,
) -> Any:
    """scan over steps of (vmap over members of update), on batches prepared for a block of steps at once.

    Gathered and encoded one by one, they would take longer than the updates: many small kernels.
    """
    began, rest = eqx.partition(states, eqx.is_array)
    first = eqx.if_array(0)
    together = eqx.filter_vmap(update, in_axes=(first, first, first))
    ready = eqx.filter_vmap(prepare, in_axes=(first, first, first, None))
    block = _block(eqx.filter_eval_shape(ready, states, each, *_entries((drawn, steps), 0)), steps.shape[0])

    unrolled = 1 if jax.default_backend() == "cpu" else _divisor(block, UNROLLED)

    def one(arrays: Any, batch: Any) -> tuple[Any, None]:
        return eqx.filter(together(eqx.combine(arrays, rest), each, batch), eqx.is_array), None

    def several(arrays: Any, now: tuple[Any, Int[Array, " block"]]) -> tuple[Any, None]:
        states = eqx.combine(arrays, rest)
        batches = jax.vmap(lambda *at: ready(states, each, *at))(*now)
        batches = split_rows(batches, jax.tree.leaves(arrays)[0].shape[0], rows)
        return jax.lax.scan(one, arrays, batches, unroll=unrolled)[0], None

    blocks = jax.tree.map(lambda leaf: leaf.reshape(-1, block, *leaf.shape[1:]), (drawn, steps))
    ended = jax.lax.scan(several, _in_store(began), blocks)[0]
    return eqx.combine(jax.tree.map(lambda now, before: now.astype(before.dtype), ended, began), rest)


def _in_store(states: T) -> T:
    """With first moments in bfloat16 where that is asked for: updates of many members wait for memory."""

    def stored(node: Any) -> Any:
        if not isinstance(node, Moments) or not products_are_rounded():
            return node
        return node._replace(first=jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), node.first))

    return cast(T, jax.tree.map(stored, states, is_leaf=lambda node: isinstance(node, Moments)))


def _block(batch: Any, steps: int) -> int:
    """How many batches are prepared at once: as many as fit, in equal blocks."""
    size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(batch))
    most = max(1, PREPARED_BYTES[jax.default_backend() == "cpu"] // max(1, size))
    return _divisor(steps, most)


def _divisor(count: int, most: int) -> int:
    """The largest one that is not above `most`."""
    return next(part for part in range(min(most, count), 0, -1) if count % part == 0)


def _key(seed: Int[Array, ""], purpose: int) -> PRNGKeyArray:
    return jax.random.fold_in(jax.random.key(seed), purpose)


def product(**choices: Sequence[Any]) -> list[dict[str, Any]]:
    """Every combination of the choices, the last varying fastest."""
    combinations: list[dict[str, Any]] = [{}]
    for name, values in choices.items():
        combinations = [{**c, name: value} for c in combinations for value in values]
    return combinations
