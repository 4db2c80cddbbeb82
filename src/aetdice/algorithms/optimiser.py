"""Adam with a traced, cosine-shaped learning rate.

Its schedule depends on the number of the update alone, so it is computed ahead of the updates; what is
left is one pass over weights, gradient and moments.
"""

from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

M = TypeVar("M")

FIRST_DECAY, SECOND_DECAY, EPSILON = 0.9, 0.999, 1e-8


class Moments(NamedTuple):
    """Decaying averages of a gradient and of its square, each shaped as the weights are."""

    first: object
    second: object


class Pace(NamedTuple):
    """How far one update goes."""

    rate: Float[Array, ""]
    """The learning rate, corrected for moments that begin at zero."""
    guard: Float[Array, ""]
    """Keeps the square root of the second moment from zero."""


def no_moments(weights: object) -> Moments:
    """Before the first update."""
    zeros = jax.tree.map(jnp.zeros_like, weights)
    return Moments(zeros, zeros)


def cosine(progress: Float[Array, ""]) -> Float[Array, ""]:
    """From 1 at the start to 0 at the end."""
    return (1 + jnp.cos(jnp.pi * jnp.clip(progress, 0, 1))) / 2


def pace(rate: Float[Array, ""], step: Float[Array, ""]) -> Pace:
    """Of an update that `step` others went before."""
    first, second = 1 - FIRST_DECAY ** (step + 1), jnp.sqrt(1 - SECOND_DECAY ** (step + 1))
    return Pace(rate * second / first, EPSILON * second)


def descend(weights: M, gradient: M, moments: Moments, pace: Pace) -> tuple[M, Moments]:
    """One step against the gradient: θ - α √(1-b₂ᵗ)/(1-b₁ᵗ) · m / (√v + ε √(1-b₂ᵗ)).

    Moments are kept in the precision they come in.
    """
    first = average(_as_these(moments.first, weights), gradient, FIRST_DECAY)
    second = average(moments.second, jax.tree.map(jnp.square, gradient), SECOND_DECAY)

    def moved(weight: Array, m: Array, v: Array) -> Array:
        return weight - pace.rate * m / (jnp.sqrt(v) + pace.guard)

    moved_weights = jax.tree.map(moved, weights, first, second)
    return moved_weights, Moments(_as_these(first, moments.first), second)


def _as_these(arrays: M, others: M) -> M:
    """In their precision."""
    return jax.tree.map(lambda array, other: array.astype(other.dtype), arrays, others)


def average(old: M, new: M, decay: Float[Array, ""] | float) -> M:
    """decay · old + (1 - decay) · new, weight by weight."""
    return jax.tree.map(lambda o, n: decay * o + (1 - decay) * n, old, new)
