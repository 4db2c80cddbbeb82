"""Members over all visible devices: each device trains its own, and nothing is exchanged."""

from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

T = TypeVar("T")

AXIS = "members"


def over_devices(function: Callable[..., T], members: tuple[Any, ...], shared: tuple[Any, ...]) -> T:
    """`function(*members, *shared)`, with the first axis of all `members`, and of what it returns, split.

    Where devices do not divide them, copies of the last member fill up; no member sees another, so what it
    learns does not depend on how many devices there are.
    """
    own, fixed = eqx.partition(members, eqx.is_array)
    count = jax.tree.leaves(own)[0].shape[0]
    devices = jax.devices()[:count]
    if len(devices) == 1:
        return function(*members, *shared)
    common, rest = eqx.partition(shared, eqx.is_array)

    def part(own: Any, common: Any) -> Any:
        return eqx.filter(function(*eqx.combine(own, fixed), *eqx.combine(common, rest)), eqx.is_array)

    filled = jax.tree.map(lambda leaf: _filled(leaf, -count % len(devices)), own)
    split, whole = PartitionSpec(AXIS), PartitionSpec()  # type: ignore[no-untyped-call]
    mesh = Mesh(np.array(devices), (AXIS,))
    spread = jax.shard_map(part, mesh=mesh, in_specs=(split, whole), out_specs=split, check_vma=False)
    found = jax.tree.map(lambda leaf: leaf[:count], spread(filled, common))
    returned = eqx.filter_eval_shape(function, *members, *shared)
    return eqx.combine(found, eqx.filter(returned, lambda leaf: not isinstance(leaf, jax.ShapeDtypeStruct)))


def gather(tree: T) -> T:
    """What is spread over devices, on the first of them."""
    first = jax.devices()[0]
    return jax.tree.map(lambda leaf: jax.device_put(leaf, first) if eqx.is_array(leaf) else leaf, tree)


def _filled(leaf: jax.Array, missing: int) -> jax.Array:
    return jnp.concatenate([leaf, jnp.repeat(leaf[-1:], missing, axis=0)])
