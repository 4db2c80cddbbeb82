"""γφ(s̃') - φ(s̃) for every step: sparse for tables, dense for the features of a network."""

import abc
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
import scipy.sparse as sp
from jaxtyping import Array, Float, Int, Shaped
from scipy.sparse.linalg import splu

from aetdice.data.passes import block_size
from aetdice.objectives import in_float64


class Differences(abc.ABC):
    """A matrix of steps × parameters, as Newton's method uses it."""

    @abc.abstractmethod
    def times(self, parameters: Float[np.ndarray, " p"]) -> Float[np.ndarray, " steps"]:
        """A θ."""

    @abc.abstractmethod
    def transposed_times(self, columns: Float[np.ndarray, "steps c"]) -> Float[np.ndarray, "p c"]:
        """Aᵀ Y."""

    @abc.abstractmethod
    def gram(self, weight: Float[np.ndarray, " steps"]) -> Any:
        """Aᵀ diag(weight) A, which `solve` takes; grams of parts of the steps may be added up."""

    @abc.abstractmethod
    def solve(self, gram: Any, damping: float, right: Float[np.ndarray, "p c"]) -> Float[np.ndarray, "p c"]:
        """(gram + damping)⁻¹ right."""


class SparseDifferences(Differences):
    """A few entries per step."""

    def __init__(self, matrix: sp.csr_array) -> None:
        self.matrix = matrix

    def times(self, parameters: Float[np.ndarray, " p"]) -> Float[np.ndarray, " steps"]:
        return self.matrix @ parameters

    def transposed_times(self, columns: Float[np.ndarray, "steps c"]) -> Float[np.ndarray, "p c"]:
        return self.matrix.T @ columns

    def gram(self, weight: Float[np.ndarray, " steps"]) -> Any:
        return self.matrix.T @ sp.diags_array(weight) @ self.matrix

    def solve(self, gram: Any, damping: float, right: Float[np.ndarray, "p c"]) -> Float[np.ndarray, "p c"]:
        return splu((gram + sp.diags_array(np.full(right.shape[0], damping))).tocsc()).solve(right)


class TimedDifferences(Differences):
    """Features of a network, dense, and a constant per time step, of which a step touches two.

    On the device in float64, in blocks of rows. The constants' columns are never written out: with
    a horizon of hundreds they would be most of the matrix.
    """

    def __init__(
        self,
        here: Float[Array, "steps h"],
        there: Float[Array, "steps h"],
        now: Int[np.ndarray, " steps"],
        then: Int[np.ndarray, " steps"],
        follows: Float[np.ndarray, " steps"],
        constants: int,
    ) -> None:
        """`follows` is γ where a step goes on, else 0."""
        self.steps, self.constants = now.size, constants
        size = block_size(self.steps)
        self.shape = (-(-self.steps // size), size)
        with jax.enable_x64(True):
            self.times_of = tuple(jax.device_put(self._padded(t)) for t in (now, then))
            self.follows = jax.device_put(self._padded(follows))
            self.blocks = _differences(here, there, self.follows)

    def times(self, parameters: Float[np.ndarray, " p"]) -> Float[np.ndarray, " steps"]:
        last, constants = np.split(parameters, [parameters.size - self.constants])
        product = in_float64(_times)(self.blocks, *self.times_of, self.follows, last, constants)
        return product.reshape(-1)[: self.steps]

    def transposed_times(self, columns: Float[np.ndarray, "steps c"]) -> Float[np.ndarray, "p c"]:
        sums = in_float64(_transposed_times)(
            self.blocks, *self.times_of, self.follows, self._padded(columns), np.zeros(self.constants)
        )
        return np.concatenate(sums)

    def gram(self, weight: Float[np.ndarray, " steps"]) -> Float[np.ndarray, "p p"]:
        features, cross, constants = in_float64(_gram)(
            self.blocks, *self.times_of, self.follows, self._padded(weight), np.zeros(self.constants)
        )
        return np.block([[features, cross.T], [cross, constants]])

    def solve(self, gram: Any, damping: float, right: Float[np.ndarray, "p c"]) -> Float[np.ndarray, "p c"]:
        system, size = np.array(gram), right.shape[0]
        system[np.diag_indices(size)] += damping + 1e-12 * np.trace(system) / size
        return scipy.linalg.solve(system, right, assume_a="pos")

    def _padded(self, rows: Shaped[np.ndarray, "steps ..."]) -> Shaped[np.ndarray, "blocks block ..."]:
        missing = self.shape[0] * self.shape[1] - self.steps
        padding = np.zeros((missing, *rows.shape[1:]), rows.dtype)
        return np.concatenate([rows, padding]).reshape(*self.shape, *rows.shape[1:])


@jax.jit
def _differences(here: Array, there: Array, follows: Array) -> Array:
    """In blocks, as `follows` is; rows beyond the steps count nothing."""
    missing = follows.size - here.shape[0]
    here, there = (
        jnp.pad(each, ((0, missing), (0, 0))).reshape(*follows.shape, -1).astype(follows.dtype)
        for each in (here, there)
    )
    return follows[..., None] * there - here


def _times(
    blocks: Array, now: Array, then: Array, follows: Array, last: Array, constants: Array
) -> Float[Array, "blocks block"]:
    return blocks @ last + follows * constants[then] - constants[now]


def _transposed_times(
    blocks: Array, now: Array, then: Array, follows: Array, columns: Array, constants: Array
) -> tuple[Float[Array, "h c"], Float[Array, "t c"]]:
    times = constants.size

    def add(total: tuple[Array, Array], row: tuple[Array, ...]) -> tuple[tuple[Array, Array], None]:
        block, now, then, follows, columns = row
        features, by_time = total
        onward = follows[:, None] * columns
        by_time += _sums(onward, then, times) - _sums(columns, now, times)
        return (features + block.T @ columns, by_time), None

    width = columns.shape[2]
    start = (
        jnp.zeros((blocks.shape[2], width), blocks.dtype),
        jnp.zeros((times, width), blocks.dtype),
    )
    return jax.lax.scan(add, start, (blocks, now, then, follows, columns))[0]


def _gram(
    blocks: Array, now: Array, then: Array, follows: Array, weight: Array, constants: Array
) -> tuple[Float[Array, "h h"], Float[Array, "t h"], Float[Array, "t t"]]:
    """Aᵀ diag(weight) A by blocks: features × features, constants × features, constants × constants."""
    width, times = blocks.shape[2], constants.size

    def pairs(values: Array, one: Array, other: Array) -> Array:
        return _sums(values, one * times + other, times**2).reshape(times, times)

    def add(total: tuple[Array, ...], row: tuple[Array, ...]) -> tuple[tuple[Array, ...], None]:
        block, now, then, follows, weight = row
        features, cross, by_time = total
        weighted = block * weight[:, None]
        cross += _sums(follows[:, None] * weighted, then, times) - _sums(weighted, now, times)
        onward = follows * weight
        met = pairs(onward, now, then)
        by_time += pairs(weight, now, now) + pairs(follows * onward, then, then) - met - met.T
        return (features + weighted.T @ block, cross, by_time), None

    shapes = (width, width), (times, width), (times, times)
    start = tuple(jnp.zeros(shape, blocks.dtype) for shape in shapes)
    features, cross, by_time = jax.lax.scan(add, start, (blocks, now, then, follows, weight))[0]
    return features, cross, by_time


def _sums(values: Array, groups: Array, count: int) -> Array:
    """Sums of rows by group; for one group a plain sum, since a scatter adds rows to one address in turn."""
    if count == 1:
        return jnp.sum(values, axis=0, keepdims=True)
    return jax.ops.segment_sum(values, groups, count)
