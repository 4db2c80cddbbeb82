"""γφ(s̃') - φ(s̃) for every step: sparse for tables, dense for the features of a network."""

import abc

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
import scipy.sparse as sp
from jaxtyping import Array, Float
from scipy.sparse.linalg import splu

from aetdice.objectives import in_float64

BLOCK = 4096


class Differences(abc.ABC):
    """A matrix of steps × parameters, as Newton's method uses it."""

    @abc.abstractmethod
    def times(self, parameters: Float[np.ndarray, " p"]) -> Float[np.ndarray, " steps"]:
        """A θ."""

    @abc.abstractmethod
    def transposed_times(self, columns: Float[np.ndarray, "steps c"]) -> Float[np.ndarray, "p c"]:
        """Aᵀ Y."""

    @abc.abstractmethod
    def solve(
        self, weight: Float[np.ndarray, " steps"], damping: float, right: Float[np.ndarray, "p c"]
    ) -> Float[np.ndarray, "p c"]:
        """(Aᵀ diag(weight) A + damping)⁻¹ right."""


class SparseDifferences(Differences):
    """A few entries per step."""

    def __init__(self, matrix: sp.csr_array) -> None:
        self.matrix = matrix

    def times(self, parameters: Float[np.ndarray, " p"]) -> Float[np.ndarray, " steps"]:
        return self.matrix @ parameters

    def transposed_times(self, columns: Float[np.ndarray, "steps c"]) -> Float[np.ndarray, "p c"]:
        return self.matrix.T @ columns

    def solve(
        self, weight: Float[np.ndarray, " steps"], damping: float, right: Float[np.ndarray, "p c"]
    ) -> Float[np.ndarray, "p c"]:
        system = self.matrix.T @ sp.diags_array(weight) @ self.matrix
        return splu((system + sp.diags_array(np.full(right.shape[0], damping))).tocsc()).solve(right)


class DenseDifferences(Differences):
    """Every entry, on the device in float64, in blocks of rows."""

    def __init__(self, matrix: Float[np.ndarray, "steps p"]) -> None:
        self.steps, width = matrix.shape
        padding = np.zeros((-self.steps % BLOCK, width))
        blocks = np.concatenate([matrix, padding]).reshape(-1, BLOCK, width)
        with jax.enable_x64(True):
            self.blocks = jnp.asarray(blocks)

    def times(self, parameters: Float[np.ndarray, " p"]) -> Float[np.ndarray, " steps"]:
        return in_float64(_times)(self.blocks, parameters).reshape(-1)[: self.steps]

    def transposed_times(self, columns: Float[np.ndarray, "steps c"]) -> Float[np.ndarray, "p c"]:
        return in_float64(_transposed_times)(self.blocks, self._padded(columns))

    def solve(
        self, weight: Float[np.ndarray, " steps"], damping: float, right: Float[np.ndarray, "p c"]
    ) -> Float[np.ndarray, "p c"]:
        system = np.array(in_float64(_gram)(self.blocks, self._padded(weight[:, None])[..., 0]))
        size = right.shape[0]
        system[np.diag_indices(size)] += damping + 1e-12 * np.trace(system) / size
        return scipy.linalg.solve(system, right, assume_a="pos")

    def _padded(self, columns: Float[np.ndarray, "steps c"]) -> Float[np.ndarray, "blocks block c"]:
        padding = np.zeros((-self.steps % BLOCK, columns.shape[1]))
        return np.concatenate([columns, padding]).reshape(-1, BLOCK, columns.shape[1])


def _times(blocks: Array, parameters: Array) -> Array:
    return jax.lax.map(lambda block: block @ parameters, blocks)


def _transposed_times(blocks: Array, columns: Array) -> Array:
    def add(total: Array, pair: tuple[Array, Array]) -> tuple[Array, None]:
        return total + pair[0].T @ pair[1], None

    start = jnp.zeros((blocks.shape[2], columns.shape[2]), blocks.dtype)
    return jax.lax.scan(add, start, (blocks, columns))[0]


def _gram(blocks: Array, weight: Array) -> Array:
    def add(total: Array, pair: tuple[Array, Array]) -> tuple[Array, None]:
        return total + (pair[0] * pair[1][:, None]).T @ pair[0], None

    start = jnp.zeros((blocks.shape[2], blocks.shape[2]), blocks.dtype)
    return jax.lax.scan(add, start, (blocks, weight))[0]
