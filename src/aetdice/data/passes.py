"""Passes over all rows of a dataset, a block at a time: what is gathered does not grow with it."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

S = TypeVar("S")

BLOCK, LARGE_BLOCK = 2048, 16_384
"""What fits into a CPU's caches, and what keeps other devices busy."""


def block_size(count: int) -> int:
    """How many of so many rows are looked at together."""
    return min(count, BLOCK if jax.default_backend() == "cpu" else LARGE_BLOCK)


def add(one: S, other: S) -> S:
    """Leaf by leaf."""
    return jax.tree.map(lambda a, b: a + b, one, other)


def pass_over(
    count: int,
    look: Callable[[Int[Array, " block"], Bool[Array, " block"]], tuple[S, Any]],
    merge: Callable[[S, S], S] = add,
) -> tuple[S, Any]:
    """What `look` makes of all rows: sums of blocks, merged, and columns of theirs, put together.

    The last block repeats the last row to fill up; `look` is told which rows count. Zeros merged with sums
    must be those sums.
    """
    size = block_size(count)
    blocks = -(-count // size)

    def block(index: Int[Array, ""]) -> tuple[S, Any]:
        rows = index * size + jnp.arange(size)
        return look(jnp.minimum(rows, count - 1), rows < count)

    def onward(sums: S, index: Int[Array, ""]) -> tuple[S, Any]:
        added, columns = block(index)
        return merge(sums, added), columns

    none = jax.tree.map(
        lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(lambda: block(jnp.asarray(0))[0])
    )
    sums, columns = jax.lax.scan(onward, none, jnp.arange(blocks))
    return sums, jax.tree.map(lambda each: each.reshape(-1, *each.shape[2:])[:count], columns)
