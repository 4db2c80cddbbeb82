"""Inverse-CDF sampling: steps drawn in proportion to their weights."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, Shaped, UInt8, UInt32

from aetdice.errors import InputError


class Courses(NamedTuple):
    """Of a mixture policy."""

    of_steps: UInt8[Array, " steps"]
    """The course that each step shows."""
    chances: Float[Array, " courses"]
    """How likely an episode is to keep to each."""


class Shown(NamedTuple):
    """Steps that a policy learns from."""

    rows: Int[Array | np.ndarray, "*n"]
    counts: Float[Array | np.ndarray, "*n"] | None = None
    """How much each counts; None where every step drawn counts 1."""
    courses: Shaped[Array | np.ndarray, "*n"] | None = None
    """The course that each shows; None where policies are no mixtures."""


class SampleWeights(NamedTuple):
    """How often each step is drawn for a policy, and how much it counts once drawn."""

    cdf: UInt32[Array, " steps"]
    loss_weights: Float[Array, " steps"] | None = None
    courses: Courses | None = None

    def drawn_by(self, bits: UInt32[Array, "*n"]) -> Shown:
        """What these numbers draw; never a step without a share, so no number lies beyond the CDF's end."""
        rows = jnp.searchsorted(
            self.cdf, jnp.minimum(bits, self.cdf[-1] - 1), side="right", method="scan_unrolled"
        )
        counts = None if self.loss_weights is None else self.loss_weights[rows]
        return Shown(rows, counts, None if self.courses is None else self.courses.of_steps[rows])


def cumulative_shares(weights: Float[np.ndarray, " steps"]) -> UInt32[np.ndarray, " steps"]:
    """The CDF of drawing steps in proportion to their weights, in units of 2⁻³².

    Integers, so that millions of steps are drawn as exactly as a few.
    """
    if not np.all(np.isfinite(weights)) or weights.min() < 0 or not weights.any():
        raise InputError("the weights of steps must be finite, none negative and not all zero")
    shares = np.cumsum(weights.astype(np.float64))
    return in_units(shares, shares[-1])


def in_units(shares: Float[np.ndarray, " steps"], total: float) -> UInt32[np.ndarray, " steps"]:
    """Of the total, in units of 2⁻³²."""
    return np.minimum(np.round(shares / total * 2.0**32), 2.0**32 - 1).astype(np.uint32)


def sample_bits(key: PRNGKeyArray, count: int) -> UInt32[Array, " count"]:
    """The numbers that rows are drawn by."""
    return jax.random.bits(key, (count,), jnp.uint32)


def rows_of_bits(cdf: UInt32[np.ndarray, " steps"], bits: UInt32[np.ndarray, "*n"]) -> Int[np.ndarray, "*n"]:
    """The rows that `SampleWeights` draws by these numbers, on the host: in rising order, so that a CDF of
    many steps is read once from one end to the other.
    """
    flat = np.minimum(bits, cdf[-1] - 1).ravel()
    order = np.argsort(flat)
    rows = np.empty(flat.size, np.int32)
    rows[order] = np.searchsorted(cdf, flat[order], side="right")
    return rows.reshape(bits.shape)
