"""The α-fair function of one variable, made total."""

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from aetdice.objectives.parameters import Parameter, cast, parameter, text

Continuation = Literal["quadratic", "linear"]


class Fair(eqx.Module):
    """u_a(x) = (x^{1-a} - 1)/(1-a), u_1 = log, continued below a threshold τ.

    Below τ stands the Taylor expansion at τ: of second order (`quadratic`; with a = 1 and
    τ = 1 the paper's piecewise log) or of first order (`linear`). Either way u_a is finite,
    increasing and concave on all of R for a ≥ 0. Works entry by entry on any shape.
    """

    a: Parameter = eqx.field(converter=parameter, default=1.0)
    threshold: Parameter = eqx.field(converter=parameter, default=1.0)
    continuation: Continuation = eqx.field(static=True, default="quadratic")

    def __call__(self, x: Float[Array, "*s"]) -> Float[Array, "*s"]:
        a, tau = cast(self.a, x), cast(self.threshold, x)
        inside = x >= tau
        below = jnp.where(inside, 0, x - tau)
        return _power_log(jnp.where(inside, x, tau), a) + tau**-a * below - self._curvature(x) * below**2 / 2

    def slope(self, x: Float[Array, "*s"]) -> Float[Array, "*s"]:
        """u_a'(x), positive and decreasing."""
        a, tau = cast(self.a, x), cast(self.threshold, x)
        return jnp.maximum(x, tau) ** -a - self._curvature(x) * jnp.minimum(x - tau, 0)

    def inverse_slope(self, mu: Float[Array, "*s"]) -> Float[Array, "*s"]:
        """The x with u_a'(x) = μ: where u_a(x) - μx is largest.

        Meant for a > 0 and 0 < μ ≤ `steepest`; a = 0 has one slope only, use the slack form.
        """
        a, tau = cast(self.a, mu), cast(self.threshold, mu)
        edge = tau**-a
        above = jnp.minimum(mu, edge) ** (-1 / a)
        curvature = self._curvature(mu)
        below = jnp.maximum(mu - edge, 0) / jnp.where(curvature > 0, curvature, jnp.inf)
        return above - below

    @property
    def steepest(self) -> Parameter:
        """The supremum of the slope: the largest multiplier with a finite conjugate."""
        edge = jnp.asarray(self.threshold) ** -jnp.asarray(self.a)
        return edge if self.continuation == "linear" else jnp.full_like(edge, jnp.inf)

    def _curvature(self, x: Float[Array, "*s"]) -> Float[Array, ""]:
        a, tau = cast(self.a, x), cast(self.threshold, x)
        return jnp.zeros_like(a) if self.continuation == "linear" else a * tau ** (-a - 1)

    @property
    def name(self) -> str:
        kind = {"1": "log", "0": "x - 1"}.get(text(self.a), f"u[a={text(self.a)}]")
        return kind if kind == "x - 1" else f"{kind}, {self.continuation} below {text(self.threshold)}"


def _power_log(x: Float[Array, "*s"], a: Float[Array, ""]) -> Float[Array, "*s"]:
    """(x^{1-a} - 1)/(1-a) for x > 0, exact through a = 1: log x · expm1(z)/z, z = (1-a) log x."""
    log_x = jnp.log(x)
    z = (1 - a) * log_x
    small = jnp.abs(z) < 1e-4
    safe = jnp.where(small, 1.0, z)
    ratio = jnp.where(small, 1 + z / 2 + z**2 / 6, jnp.expm1(safe) / safe)
    return log_x * ratio
