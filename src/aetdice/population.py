"""A population: members that differ in traced values only, trained together in one program."""

from collections.abc import Sequence
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt32

from aetdice.algorithms.cloning import CloningState, draw, init_cloning, update_cloning
from aetdice.algorithms.dice import DiceHyper, DiceSetting, DualState, init_dual, update_dual
from aetdice.data.resident import ResidentData
from aetdice.networks import Encoder, Nu, Policy, PolicyHead

T = TypeVar("T")


def stack(members: Sequence[T]) -> T:
    """Members side by side along a first axis, in float32 and int32."""
    return jax.tree.map(lambda *leaves: jnp.stack([_compact(leaf) for leaf in leaves]), *members)


def member(population: T, index: int) -> T:
    """One member of a population."""
    return jax.tree.map(lambda leaf: leaf[index] if eqx.is_array(leaf) else leaf, population)


def _compact(leaf: Any) -> Array:
    array = jnp.asarray(leaf)
    return array.astype(jnp.float32) if jnp.issubdtype(array.dtype, jnp.floating) else array


@eqx.filter_jit
def start_duals(
    encoder: Encoder,
    hidden: tuple[int, ...],
    heads: int,
    hypers: DiceHyper,
    seeds: Int[Array, " members"],
    data: ResidentData,
    setting: DiceSetting,
) -> DualState:
    """Fresh ν and slacks; a member's depend on its own seed alone."""

    def start(hyper: DiceHyper, seed: Int[Array, ""]) -> DualState:
        return init_dual(Nu(encoder, hidden, heads, _key(seed, 0)), hyper, data, setting)

    return eqx.filter_vmap(start)(hypers, seeds)


@eqx.filter_jit
def start_policies(
    encoder: Encoder, head: PolicyHead, hidden: tuple[int, ...], seeds: Int[Array, " members"]
) -> CloningState:
    """Fresh policies."""

    def start(seed: Int[Array, ""]) -> CloningState:
        return init_cloning(Policy(encoder, head, hidden, _key(seed, 1)))

    return eqx.filter_vmap(start)(seeds)


@eqx.filter_jit
def train_duals(
    states: DualState,
    hypers: DiceHyper,
    seeds: Int[Array, " members"],
    data: ResidentData,
    steps: Int[Array, " chunk"],
    setting: DiceSetting,
) -> DualState:
    """A chunk of dual updates for every member; the batch of a step depends on seed and step."""

    def update(state: DualState, hyper: DiceHyper, seed: Int[Array, ""], step: Int[Array, ""]) -> DualState:
        batch_key, start_key = jax.random.split(jax.random.fold_in(_key(seed, 2), step))
        rows = jax.random.randint(batch_key, (setting.batch,), 0, data.steps.count)
        starts = jax.random.randint(start_key, (setting.starts,), 0, data.initial.shape[0])
        return update_dual(state, hyper, data, rows, data.initial[starts], step.astype(jnp.float32), setting)

    return _scan(update, states, (hypers, seeds), steps)


@eqx.filter_jit
def train_policies(
    states: CloningState,
    tickets: UInt32[Array, "members steps"],
    learning_rates: Float[Array, " members"],
    seeds: Int[Array, " members"],
    data: ResidentData,
    steps: Int[Array, " chunk"],
    batch: int,
    total: int,
) -> CloningState:
    """A chunk of cloning updates for every policy."""

    def update(
        state: CloningState, tickets: Array, rate: Array, seed: Array, step: Int[Array, ""]
    ) -> CloningState:
        rows = draw(tickets, jax.random.fold_in(_key(seed, 3), step), batch)
        return update_cloning(state, data.steps.take(rows), rate, step.astype(jnp.float32) / total)

    return _scan(update, states, (tickets, learning_rates, seeds), steps)


def _scan(update: Any, states: Any, each: tuple[Any, ...], steps: Int[Array, " chunk"]) -> Any:
    """scan over steps of (vmap over members of update)."""
    arrays, rest = eqx.partition(states, eqx.is_array)
    together = eqx.filter_vmap(update, in_axes=(eqx.if_array(0), *[eqx.if_array(0)] * len(each), None))

    def body(arrays: Any, step: Int[Array, ""]) -> tuple[Any, None]:
        return eqx.filter(together(eqx.combine(arrays, rest), *each, step), eqx.is_array), None

    return eqx.combine(jax.lax.scan(body, arrays, steps)[0], rest)


def _key(seed: Int[Array, ""], purpose: int) -> PRNGKeyArray:
    return jax.random.fold_in(jax.random.key(seed), purpose)


def product(**choices: Sequence[Any]) -> list[dict[str, Any]]:
    """Every combination of the choices, the last varying fastest."""
    combinations: list[dict[str, Any]] = [{}]
    for name, values in choices.items():
        combinations = [{**c, name: value} for c in combinations for value in values]
    return combinations
