"""Inverse-CDF sampling: steps drawn in proportion to their weights."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt8, UInt32

from aetdice.errors import InputError


class Courses(NamedTuple):
    """Of mixture policies."""

    of_steps: UInt8[Array, "*p steps"]
    """The course that each step shows."""
    chances: Float[Array, "*p courses"]
    """How likely an episode is to keep to each."""


class SampleWeights(NamedTuple):
    """How often each step is drawn for a policy, and how much it counts once drawn."""

    cdf: UInt32[Array, "*p steps"]
    loss_weights: Float[Array, "*p steps"] | None
    """None where every step drawn counts 1."""
    courses: Courses | None = None
    """None where policies are no mixtures."""

    def counts(self, rows: Int[Array, " n"]) -> Float[Array, " n"]:
        """How much each of these steps counts for one policy."""
        return jnp.ones(rows.shape) if self.loss_weights is None else self.loss_weights[rows]

    def courses_of(self, rows: Int[Array, " n"]) -> Int[Array, " n"] | None:
        """The course that each of these steps shows one policy."""
        return None if self.courses is None else self.courses.of_steps[rows].astype(jnp.int32)

    @property
    def of_twins(self) -> "SampleWeights":
        """The last policy's, a twin's, for all: plain data."""
        return jax.tree.map(lambda each: jnp.broadcast_to(each[-1], each.shape), self)


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


def sample_rows(cdf: UInt32[Array, " steps"], key: PRNGKeyArray, count: int) -> Int[Array, " count"]:
    """Rows drawn by the CDF; never one without a share, so no number lies beyond its end."""
    uniform = jnp.minimum(sample_bits(key, count), cdf[-1] - 1)
    return jnp.searchsorted(cdf, uniform, side="right", method="scan_unrolled")


def sample_bits(key: PRNGKeyArray, count: int) -> UInt32[Array, " count"]:
    """The numbers that rows are drawn by."""
    return jax.random.bits(key, (count,), jnp.uint32)


def rows_of_bits(cdf: UInt32[np.ndarray, " steps"], bits: UInt32[np.ndarray, "*n"]) -> Int[np.ndarray, "*n"]:
    """What `sample_rows` draws by these numbers, on the host."""
    return np.searchsorted(cdf, np.minimum(bits, cdf[-1] - 1), side="right")
