"""φ-divergences, each with its conjugate on the half line and the ratio that attains it.

All are normalised, φ(1) = φ'(1) = 0: a linear term would change the regulariser under
early termination.
"""

import abc
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

EXPONENT_CAP = 20.0
"""Exponentials go on linearly beyond e^20, so that float32 never overflows."""


class Divergence(eqx.Module):
    """A convex φ on [0, ∞), entry by entry on any shape."""

    @abc.abstractmethod
    def __call__(self, ratio: Float[Array, "*s"]) -> Float[Array, "*s"]:
        """φ(w)."""

    @abc.abstractmethod
    def ratio(self, y: Float[Array, "*s"]) -> Float[Array, "*s"]:
        """w = max(0, (φ')⁻¹(y)), the maximiser of wy - φ(w) over w ≥ 0 (paper: eq:wstar)."""

    @abc.abstractmethod
    def conjugate(self, y: Float[Array, "*s"]) -> Float[Array, "*s"]:
        """φ*₊(y) = sup_{w≥0} wy - φ(w)."""


class ChiSquare(Divergence):
    """φ(w) = ½(w - 1)²."""

    def __call__(self, ratio: Float[Array, "*s"]) -> Float[Array, "*s"]:
        return (ratio - 1) ** 2 / 2

    def ratio(self, y: Float[Array, "*s"]) -> Float[Array, "*s"]:
        return jnp.maximum(1 + y, 0)

    def conjugate(self, y: Float[Array, "*s"]) -> Float[Array, "*s"]:
        return (jnp.maximum(1 + y, 0) ** 2 - 1) / 2


class KL(Divergence):
    """φ(w) = w log w - w + 1."""

    def __call__(self, ratio: Float[Array, "*s"]) -> Float[Array, "*s"]:
        top = jnp.exp(jnp.asarray(EXPONENT_CAP, ratio.dtype))
        below, above = jnp.minimum(ratio, top), jnp.maximum(ratio - top, 0)
        return _entropy(below) + EXPONENT_CAP * above + above**2 / (2 * top)

    def ratio(self, y: Float[Array, "*s"]) -> Float[Array, "*s"]:
        return jnp.exp(jnp.minimum(y, EXPONENT_CAP)) * (1 + jnp.maximum(y - EXPONENT_CAP, 0))

    def conjugate(self, y: Float[Array, "*s"]) -> Float[Array, "*s"]:
        above = jnp.maximum(y - EXPONENT_CAP, 0)
        return jnp.expm1(jnp.minimum(y, EXPONENT_CAP)) + jnp.exp(jnp.asarray(EXPONENT_CAP, y.dtype)) * (
            above + above**2 / 2
        )


class SoftChiSquare(Divergence):
    """KL below w = 1, χ² above: never exactly zero, and no exponential growth."""

    def __call__(self, ratio: Float[Array, "*s"]) -> Float[Array, "*s"]:
        return _entropy(jnp.minimum(ratio, 1)) + jnp.maximum(ratio - 1, 0) ** 2 / 2

    def ratio(self, y: Float[Array, "*s"]) -> Float[Array, "*s"]:
        return jnp.exp(jnp.minimum(y, 0)) + jnp.maximum(y, 0)

    def conjugate(self, y: Float[Array, "*s"]) -> Float[Array, "*s"]:
        above = jnp.maximum(y, 0)
        return jnp.expm1(jnp.minimum(y, 0)) + above + above**2 / 2


def _entropy(w: Float[Array, "*s"]) -> Float[Array, "*s"]:
    positive = jnp.where(w > 0, w, 1)
    return jnp.where(w > 0, positive * jnp.log(positive), 0) - w + 1


DIVERGENCES: dict[str, Callable[[], Divergence]] = {
    "chi2": ChiSquare,
    "soft-chi2": SoftChiSquare,
    "kl": KL,
}
"""Every divergence by name; to be listed here is to be tested."""
