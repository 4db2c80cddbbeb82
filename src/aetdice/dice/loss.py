"""The one DICE loss: residual, dual, ratio. AETDICE, FairDICE and OptiDICE differ in their arguments."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from aetdice.dice.flow import Flow
from aetdice.objectives import Aggregation, Divergence, multiplier, slack_conjugate
from aetdice.objectives.parameters import Parameter, cast


def residual(
    transformed_reward: Float[Array, "steps n"],
    nu: Float[Array, " steps"],
    next_nu: Float[Array, " steps"],
    mu: Float[Array, " n"],
    flow: Flow,
) -> Float[Array, " steps"]:
    """e = μ·r̃ + γν' - ν, with ν' = 0 already where nothing follows."""
    return transformed_reward @ (cast(flow.reward_scale, mu) * mu) + cast(flow.discount, nu) * next_nu - nu


def ratio(
    residuals: Float[Array, " steps"], beta: Parameter, divergence: Divergence
) -> Float[Array, " steps"]:
    """w = max(0, (φ')⁻¹(e/β)) (paper: eq:wstar)."""
    return divergence.ratio(residuals / cast(beta, residuals))


def regulariser(
    residuals: Float[Array, " steps"],
    weights: Float[Array, " steps"],
    beta: Parameter,
    divergence: Divergence,
) -> Float[Array, ""]:
    """Σ d^D βφ*₊(e/β): the part of the dual loss that sums over steps."""
    scale = cast(beta, residuals)
    return weights @ (scale * divergence.conjugate(residuals / scale))


def dual_loss(
    initial_nu: Float[Array, " starts"],
    residuals: Float[Array, " steps"],
    slack: Float[Array, " n"],
    zero_utility: Float[Array, " n"],
    *,
    initial_weights: Float[Array, " starts"],
    weights: Float[Array, " steps"],
    beta: Parameter,
    divergence: Divergence,
    aggregation: Aggregation,
    flow: Flow,
) -> Float[Array, ""]:
    """E[ν(s̃_0)] + Σ d^D βφ*₊(e/β) + μ·F(0) + G*(-μ), minimised over ν and the slack k.

    μ = ∇G(k) (the slack form), exact for every concave G; a linear G has μ = its weights and
    G* = 0 whatever the slack. The residuals must be taken at the same μ. The weights
    divide by the number of episodes, not of steps: D9 of docs/paper.md (paper: eq:aetdice_dual_final).
    """
    mu = multiplier(aggregation, slack)
    entering = cast(flow.initial_weight, initial_nu) * (initial_weights @ initial_nu)
    regularised = regulariser(residuals, weights, beta, divergence)
    return entering + regularised + jnp.dot(mu, zero_utility) + slack_conjugate(aggregation, slack)
