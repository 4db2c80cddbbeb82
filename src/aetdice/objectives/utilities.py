"""Utilities F: what one episode's return vector is worth."""

import abc
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from aetdice.objectives.fairness import Fair
from aetdice.objectives.parameters import Parameter, cast, parameter, per_entry, text


class Utility(eqx.Module):
    """A smooth F: R^m → R^n, finite with finite gradients at every finite return."""

    @abc.abstractmethod
    def __call__(self, returns: Float[Array, " m"]) -> Float[Array, " n"]:
        """F(R) of one episode."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """The full definition, as it stands in results."""


class Identity(Utility):
    """F(R) = R."""

    def __call__(self, returns: Float[Array, " m"]) -> Float[Array, " n"]:
        return returns

    @property
    def name(self) -> str:
        return "R"


class AlphaFairUtility(Utility):
    """F(R)_i = u_a(R_i), with a = 1 the logarithm. `offset` adds a constant (see `bsr`)."""

    fair: Fair = Fair()
    offset: Parameter = eqx.field(converter=parameter, default=0.0)

    def __call__(self, returns: Float[Array, " m"]) -> Float[Array, " n"]:
        return self.fair(returns) + cast(self.offset, returns)

    @property
    def name(self) -> str:
        shift = "" if text(self.offset) == "0" else f" + {text(self.offset)}"
        return self.fair.name + shift


class Exponential(Utility):
    """F(R)_i = exp(R_i / scale), continued linearly above R_i / scale = cap."""

    scale: Parameter = eqx.field(converter=parameter, default=50.0)
    cap: Parameter = eqx.field(converter=parameter, default=20.0)

    def __call__(self, returns: Float[Array, " m"]) -> Float[Array, " n"]:
        cap = cast(self.cap, returns)
        y = returns / cast(self.scale, returns)
        return jnp.exp(jnp.minimum(y, cap)) * (1 + jnp.maximum(y - cap, 0))

    @property
    def name(self) -> str:
        return f"exp(R / {text(self.scale)}), linear above exponent {text(self.cap)}"


class CobbDouglas(Utility):
    """F(R) = (R_0)₊^ρ / ((R_1)₊ + ε)^{1-ρ}: gain R_0 against cost R_1.

    The positive part is smooth, (x)₊ = (x + √(x² + δ²))/2, so F is finite at R = 0, at zero
    cost and at negative gain. ε should be small against the data's costs.
    """

    rho: Parameter = eqx.field(converter=parameter, default=0.5)
    epsilon: Parameter = eqx.field(converter=parameter, default=1e-3)
    delta: Parameter = eqx.field(converter=parameter, default=1e-3)

    def __call__(self, returns: Float[Array, " m"]) -> Float[Array, " n"]:
        if returns.shape[0] != 2:
            raise ValueError(f"Cobb-Douglas takes 2 returns (gain, cost), not {returns.shape[0]}; use Select")
        rho, epsilon = cast(self.rho, returns), cast(self.epsilon, returns)
        gain, cost = _positive_part(returns, cast(self.delta, returns))
        return (gain**rho * (cost + epsilon) ** (rho - 1))[None]

    @property
    def name(self) -> str:
        return (
            f"Cobb-Douglas[rho={text(self.rho)}, epsilon={text(self.epsilon)}, "
            f"delta={text(self.delta)}](R0 / R1)"
        )


def _positive_part(x: Float[Array, "*s"], delta: Float[Array, ""]) -> Float[Array, "*s"]:
    """(x + √(x² + δ²))/2 without cancellation for large negative x."""
    root = jnp.sqrt(x**2 + delta**2)
    return jnp.where(x >= 0, x + root, delta**2 / (root - jnp.minimum(x, 0))) / 2


class Threshold(Utility):
    """F(R)_i = (R_i - level) / scale: the margin above a level to be kept."""

    level: Parameter = eqx.field(converter=parameter, default=1.0)
    scale: Parameter = eqx.field(converter=parameter, default=1.0)

    def __call__(self, returns: Float[Array, " m"]) -> Float[Array, " n"]:
        return (returns - per_entry(self.level, returns)) / per_entry(self.scale, returns)

    @property
    def name(self) -> str:
        return f"(R - {text(self.level)}) / {text(self.scale)}"


class Scaled(Utility):
    """F(R)_i = factor · R_i: brings another utility to O(1) when chained behind it."""

    factor: Parameter = eqx.field(converter=parameter, default=2.0)

    def __call__(self, returns: Float[Array, " m"]) -> Float[Array, " n"]:
        return per_entry(self.factor, returns) * returns

    @property
    def name(self) -> str:
        return f"{text(self.factor)} R"


class Select(Utility):
    """F(R) = (R_i for i in indices), 0-based."""

    indices: tuple[int, ...] = eqx.field(static=True, default=(0,))

    def __call__(self, returns: Float[Array, " m"]) -> Float[Array, " n"]:
        if max(self.indices) >= returns.shape[0] or min(self.indices) < 0:
            raise ValueError(f"objective {max(self.indices)} is asked for, but there are {returns.shape[0]}")
        return returns[jnp.asarray(self.indices)]

    @property
    def name(self) -> str:
        return "R" + ",".join(map(str, self.indices))


class Stack(Utility):
    """F = (F_1, F_2, …): the utilities side by side."""

    parts: tuple[Utility, ...] = (Identity(), AlphaFairUtility())

    def __call__(self, returns: Float[Array, " m"]) -> Float[Array, " n"]:
        return jnp.concatenate([part(returns) for part in self.parts])

    @property
    def name(self) -> str:
        return "(" + "; ".join(part.name for part in self.parts) + ")"


class Chain(Utility):
    """F = … ∘ F_2 ∘ F_1: each utility applied to what the one before it gave."""

    parts: tuple[Utility, ...] = (Threshold(), AlphaFairUtility())

    def __call__(self, returns: Float[Array, " m"]) -> Float[Array, " n"]:
        for part in self.parts:
            returns = part(returns)
        return returns

    @property
    def name(self) -> str:
        return " then ".join(part.name for part in self.parts)


class CustomUtility(Utility):
    """Any smooth JAX function of the return vector; a scalar result counts as one utility."""

    function: Callable[[Float[Array, " m"]], Array] = eqx.field(static=True)

    def __call__(self, returns: Float[Array, " m"]) -> Float[Array, " n"]:
        return jnp.atleast_1d(self.function(returns))

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", repr(self.function))


def as_utility(value: "Utility | Callable[[Array], Array]") -> Utility:
    """A user's bare function becomes a utility."""
    return value if isinstance(value, Utility) else CustomUtility(value)


UTILITIES: dict[str, Callable[[], Utility]] = {
    "identity": Identity,
    "log": AlphaFairUtility,
    "alpha-fair": lambda: AlphaFairUtility(Fair(0.5)),
    "exponential": Exponential,
    "cobb-douglas": CobbDouglas,
    "threshold": Threshold,
    "scaled": Scaled,
    "select": Select,
    "stack": Stack,
    "chain": Chain,
}
"""Every utility by name, with its defaults; to be listed here is to be tested."""
