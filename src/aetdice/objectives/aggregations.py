"""Aggregations G: concave functions of the expected utilities k."""

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from aetdice.objectives.fairness import Fair
from aetdice.objectives.parameters import Parameter, cast, parameter, per_entry, text


class Aggregation(eqx.Module):
    """A concave G: R^n → R. `__call__` is all that the slack form needs."""

    @abc.abstractmethod
    def __call__(self, k: Float[Array, " n"]) -> Float[Array, ""]:
        """G(k)."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """The full definition, as it stands in results."""


class ClosedAggregation(Aggregation):
    """A concave G whose conjugate sup_k {G(k) - μ·k} has a closed maximiser."""

    @abc.abstractmethod
    def maximiser(self, mu: Float[Array, " n"]) -> Float[Array, " n"]:
        """The k that attains the conjugate at μ; ∇G(maximiser(μ)) = μ."""

    @abc.abstractmethod
    def steepest(self, like: Float[Array, " n"]) -> Float[Array, " n"]:
        """The largest feasible multiplier per entry; the smallest is 0, exclusive."""


def multiplier(aggregation: Aggregation, slack: Float[Array, " n"]) -> Float[Array, " n"]:
    """μ = ∇G(k): the slack form's multiplier, feasible by construction (D11 of docs/paper.md)."""
    return jax.grad(lambda k: aggregation(k))(slack)


def second_order(
    aggregation: Aggregation, k: Float[Array, " n"]
) -> tuple[Float[Array, ""], Float[Array, " n"], Float[Array, "n n"]]:
    """G(k), ∇G(k) and ∇²G(k)."""
    return aggregation(k), multiplier(aggregation, k), jax.hessian(lambda x: aggregation(x))(k)


def slack_conjugate(aggregation: Aggregation, slack: Float[Array, " n"]) -> Float[Array, ""]:
    """G*(-μ) = G(k) - μ·k at μ = ∇G(k), exact for every concave G."""
    return aggregation(slack) - multiplier(aggregation, slack) @ slack


def conjugate(aggregation: ClosedAggregation, mu: Float[Array, " n"]) -> Float[Array, ""]:
    """G*(-μ) = sup_k {G(k) - μ·k} through the closed maximiser (paper: app:aetdice_concrete)."""
    k = aggregation.maximiser(mu)
    return aggregation(k) - mu @ k


class Linear(Aggregation):
    """G(k) = w·k; w = 1 is the plain sum. Its multiplier is w and its conjugate 0."""

    weights: Parameter = eqx.field(converter=parameter, default=1.0)

    def __call__(self, k: Float[Array, " n"]) -> Float[Array, ""]:
        return per_entry(self.weights, k) @ k

    @property
    def name(self) -> str:
        return _weighted("sum", self.weights)


class AlphaFair(ClosedAggregation):
    """G(k) = Σ w_i u_a(k_i), with a = 1 the (weighted) Nash welfare Σ w_i log k_i.

    `offset` adds a constant per entry; `bsr` needs it at its end α = 0.
    """

    fair: Fair = Fair()
    weights: Parameter = eqx.field(converter=parameter, default=1.0)
    offset: Parameter = eqx.field(converter=parameter, default=0.0)

    def __call__(self, k: Float[Array, " n"]) -> Float[Array, ""]:
        return per_entry(self.weights, k) @ (self.fair(k) + cast(self.offset, k))

    def maximiser(self, mu: Float[Array, " n"]) -> Float[Array, " n"]:
        return self.fair.inverse_slope(mu / per_entry(self.weights, mu))

    def steepest(self, like: Float[Array, " n"]) -> Float[Array, " n"]:
        return per_entry(self.weights, like) * cast(self.fair.steepest, like)

    @property
    def name(self) -> str:
        shift = "" if text(self.offset) == "0" else f" + {text(self.offset)}"
        return _weighted(f"sum ({self.fair.name}){shift}", self.weights)


class Separable(Aggregation):
    """G(k) = Σ_i G_i(k_i): each expected utility has an aggregation of its own."""

    parts: tuple[Aggregation, ...]

    def __call__(self, k: Float[Array, " n"]) -> Float[Array, ""]:
        return sum((part(k[i : i + 1]) for i, part in enumerate(self.parts)), jnp.zeros((), k.dtype))

    @property
    def name(self) -> str:
        return " + ".join(f"{part.name} of k{i}" for i, part in enumerate(self.parts))


class SmoothMinimum(Aggregation):
    """G(k) = -log(Σ w_i exp(-s k_i) / Σ w_i) / s: from the mean (s → 0) to min_i k_i (s → ∞)."""

    sharpness: Parameter = eqx.field(converter=parameter, default=10.0)
    weights: Parameter = eqx.field(converter=parameter, default=1.0)

    def __call__(self, k: Float[Array, " n"]) -> Float[Array, ""]:
        sharpness, weights = cast(self.sharpness, k), per_entry(self.weights, k)
        return -jax.nn.logsumexp(-sharpness * k, b=weights / jnp.sum(weights)) / sharpness

    @property
    def name(self) -> str:
        return _weighted(f"smooth min [sharpness {text(self.sharpness)}]", self.weights)


class CustomAggregation(Aggregation):
    """Any concave JAX function of the expected utilities."""

    function: Callable[[Float[Array, " n"]], Float[Array, ""]] = eqx.field(static=True)

    def __call__(self, k: Float[Array, " n"]) -> Float[Array, ""]:
        return self.function(k)

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", repr(self.function))


def as_aggregation(value: "Aggregation | Callable[[Array], Array]") -> Aggregation:
    """A user's bare function becomes an aggregation."""
    return value if isinstance(value, Aggregation) else CustomAggregation(value)


def _weighted(name: str, weights: Parameter) -> str:
    return name if text(weights) == "1" else f"{name}, weights {text(weights)}"


AGGREGATIONS: dict[str, Callable[[], Aggregation]] = {
    "linear": Linear,
    "log": AlphaFair,
    "alpha-fair": lambda: AlphaFair(Fair(0.5)),
    "smooth-min": SmoothMinimum,
}
"""Every aggregation by name, with its defaults; to be listed here is to be tested."""
