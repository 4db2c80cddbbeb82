"""A draw from what neighbours had, moved along by the slope of a regression over them."""

import numpy as np
from jaxtyping import Float, Int

RIDGE = 1e-2


def kernel_of(distance: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n k"]:
    """Tricube: the farthest neighbour hardly counts, one that is not there not at all."""
    there = np.isfinite(distance)
    reach = np.where(there, distance, 0).max(axis=1, keepdims=True) + 1e-12
    return np.where(there, (1 - (np.where(there, distance, 0) / reach) ** 3).clip(1e-3) ** 3, 0)


def draw_along_lines(
    apart: Float[np.ndarray, "n k d"],
    effect: Float[np.ndarray, "n k e"],
    kernel: Float[np.ndarray, "n k"],
    rng: np.random.Generator,
) -> tuple[Float[np.ndarray, "n e"], Int[np.ndarray, " n"]]:
    """A neighbour's effect each, less the slope times how far it is `apart`; and which neighbour it was.

    Exact where effects are linear, as noisy as they are, and never beyond those of the neighbours.
    """
    kernel = kernel / kernel.sum(axis=1, keepdims=True)
    centred = apart - np.einsum("nk,nkd->nd", kernel, apart)[:, None]
    weighted = (centred * kernel[..., None]).transpose(0, 2, 1)
    gram = weighted @ centred
    size = np.einsum("ndd->n", gram) + 1e-12
    gram += (RIDGE * size)[:, None, None] * np.eye(gram.shape[1])
    slope = np.linalg.solve(gram, weighted @ effect)
    chosen = np.argmax(np.cumsum(kernel, axis=1) > rng.random(len(apart))[:, None], axis=1)
    each = np.arange(len(apart))
    moved = effect[each, chosen] - np.einsum("nd,nde->ne", apart[each, chosen], slope)
    return np.clip(moved, effect.min(axis=1), effect.max(axis=1)), chosen
