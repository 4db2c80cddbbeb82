"""Over all visible devices: members, each trained by one of them, or the rows of large batches."""

from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

T = TypeVar("T")

AXIS = "devices"
SPLIT_ROWS = 2048
"""Of a batch that is worth splitting: gradients of fewer rows take less time than adding them up."""


def over_devices(
    function: Callable[..., T], members: tuple[Any, ...], shared: tuple[Any, ...], *, batch: int = 0
) -> T:
    """`function(*members, *shared)`, with the first axis of all `members`, and of what it returns, split.

    Where devices do not divide them, copies of the last member fill up; no member sees another, so what it
    learns does not depend on how many devices there are. Members are not split if they are fewer than the
    devices and their updates look at so large a `batch` that its rows are.
    """
    own, fixed = eqx.partition(members, eqx.is_array)
    count = jax.tree.leaves(own)[0].shape[0]
    if min(count, jax.device_count()) == 1 or splits_rows(count, batch):
        return function(*members, *shared)
    common, rest = eqx.partition(shared, eqx.is_array)

    def part(own: Any, common: Any) -> Any:
        return eqx.filter(function(*eqx.combine(own, fixed), *eqx.combine(common, rest)), eqx.is_array)

    mesh = _mesh()
    filled = jax.tree.map(lambda leaf: _filled(leaf, -count % mesh.size), own)
    split, whole = PartitionSpec(AXIS), PartitionSpec()  # type: ignore[no-untyped-call]
    spread = jax.shard_map(part, mesh=mesh, in_specs=(split, whole), out_specs=split, check_vma=False)
    found = jax.tree.map(lambda leaf: leaf[:count], spread(filled, common))
    returned = eqx.filter_eval_shape(function, *members, *shared)
    return eqx.combine(found, eqx.filter(returned, lambda leaf: not isinstance(leaf, jax.ShapeDtypeStruct)))


def splits_rows(members: int, batch: int) -> bool:
    """Whether the rows of batches are spread over devices, and not members."""
    return members < jax.device_count() and batch >= SPLIT_ROWS


def split_rows(batches: T, members: int, batch: int) -> T:
    """Batches by update, member and row, the rows of large ones spread over all devices if members are not.

    Rows that devices do not divide stay together. It says where arrays are to lie and changes no result;
    the compiler has gradients added up.
    """
    spread = not jax.sharding.get_abstract_mesh().empty
    if spread or not splits_rows(members, batch):
        return batches
    rows = PartitionSpec(None, None, AXIS)  # type: ignore[no-untyped-call]
    split = NamedSharding(_mesh(), rows)

    def place(leaf: jax.Array) -> jax.Array:
        if leaf.ndim < 3 or leaf.shape[2] < batch or leaf.shape[2] % jax.device_count():
            return leaf
        return jax.lax.with_sharding_constraint(leaf, split)  # type: ignore[no-untyped-call]

    return jax.tree.map(place, batches)


def where_trained(data: T, members: int, batch: int) -> T:
    """Data on every device, if so many members or such batches are spread: sent there once."""
    if jax.device_count() == 1 or (members == 1 and not splits_rows(members, batch)):
        return data
    everywhere = NamedSharding(_mesh(), PartitionSpec())  # type: ignore[no-untyped-call]
    arrays, rest = eqx.partition(data, eqx.is_array)
    return eqx.combine(jax.device_put(arrays, everywhere), rest)


def _mesh() -> Mesh:
    return Mesh(np.array(jax.devices()), (AXIS,))


def gather(tree: T) -> T:
    """What is spread over devices, on the first of them."""
    first = jax.devices()[0]
    return jax.tree.map(lambda leaf: jax.device_put(leaf, first) if eqx.is_array(leaf) else leaf, tree)


def _filled(leaf: jax.Array, missing: int) -> jax.Array:
    return jnp.concatenate([leaf, jnp.repeat(leaf[-1:], missing, axis=0)])
