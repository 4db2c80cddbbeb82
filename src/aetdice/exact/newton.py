"""Newton's method for the dual of any ν that is linear in its parameters, in float64.

With ν(s̃) = φ(s̃)·θ the one DICE loss is convex in θ. Indicators of the states give the tabular
problem; the last hidden layer of a network gives the best ν that its features allow. In slack
form, with μ = ∇G(k) and H = ∇²G(k): ∂L/∂θ is the flow's violation, weighted by the features, and
∂L/∂k = H(x - k), x the utilities the ratios attain. Dropping ∇³G leaves a positive semi-definite
curvature, so every step descends, for any concave G, and the fixed point is k = x.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from aetdice.dice import Flow, dual_loss, ratio
from aetdice.errors import InputError
from aetdice.exact.differences import Differences
from aetdice.objectives import Aggregation, Divergence, in_float64, second_order

ANNEALING = 10.0
FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-8, 1e-14, 1e6


@dataclass(frozen=True, eq=False)
class LinearDual:
    """The dual of a dataset for ν = φ·θ."""

    differences: Differences
    """γ φ(s̃') - φ(s̃), so that e = μ·r̃ + differences·θ."""
    initial: Float[np.ndarray, " p"]
    """E[φ(s̃_0)]."""
    mass: Float[np.ndarray, " steps"]
    rewards: Float[np.ndarray, "steps n"]
    """r̃ in return units."""
    zero_utility: Float[np.ndarray, " n"]
    aggregation: Aggregation
    divergence: Divergence
    flow: Flow


@dataclass(frozen=True, eq=False)
class DualPoint:
    """L at one (θ, k), with what a Newton step needs."""

    parameters: Float[np.ndarray, " p"]
    slack: Float[np.ndarray, " n"]
    value: float
    ratio: Float[np.ndarray, " steps"]
    slope: Float[np.ndarray, " steps"]
    violation: Float[np.ndarray, " p"]
    utilities: Float[np.ndarray, " n"]
    multiplier: Float[np.ndarray, " n"]
    curvature: Float[np.ndarray, "n n"]

    @property
    def error(self) -> float:
        """The largest violation of the flow, or distance of the slack from what is attained."""
        return float(max(np.abs(self.violation).max(), np.abs(self.utilities - self.slack).max()))


def minimise_dual(
    dual: LinearDual,
    beta: float,
    parameters: Float[np.ndarray, " p"],
    slack: Float[np.ndarray, " n"],
    *,
    anneal: bool = True,
    tolerance: float = 1e-11,
    max_steps: int = 500,
) -> DualPoint:
    """min_{θ, k} L; warm-started along falling β unless the start is good already."""
    if not beta > 0 or not np.isfinite(beta):
        raise InputError(f"beta must be positive, not {beta}")
    start = max(1.0, float(np.abs(dual.rewards).max())) if anneal else beta
    count = max(0, int(np.ceil(np.log(start / beta) / np.log(ANNEALING))))
    for level in (beta * ANNEALING**i for i in range(count, -1, -1)):
        goal = tolerance if level == beta else 1e-3
        point = _descend(dual, level, parameters, slack, goal, max_steps)
        parameters, slack = point.parameters, point.slack
    return point


def _descend(
    dual: LinearDual,
    beta: float,
    parameters: Float[np.ndarray, " p"],
    slack: Float[np.ndarray, " n"],
    tolerance: float,
    max_steps: int,
) -> DualPoint:
    damping = FIRST_DAMPING
    point = evaluate_dual(dual, beta, parameters, slack)
    for _ in range(max_steps):
        if point.error <= tolerance:
            break
        along, along_slack = _direction(dual, point, beta, damping)
        slope = point.violation @ along + (point.curvature @ (point.utilities - point.slack)) @ along_slack
        step = 1.0
        while step > 1e-10:
            trial = evaluate_dual(
                dual, beta, point.parameters + step * along, point.slack + step * along_slack
            )
            if trial.value <= point.value + 1e-4 * step * slope + 1e-13 * (1 + abs(point.value)):
                break
            step /= 2
        else:
            if damping > MOST_DAMPING:
                break
            damping *= 100
            continue
        if damping > MOST_DAMPING:
            break
        point = trial
        damping = max(LEAST_DAMPING, damping / 10) if step > 0.5 else damping * 3
    return point


def _direction(
    dual: LinearDual, point: DualPoint, beta: float, damping: float
) -> tuple[Float[np.ndarray, " p"], Float[np.ndarray, " n"]]:
    """The Newton step: one system in θ, the few slacks eliminated by a Schur complement."""
    weight = dual.mass * point.slope / beta
    cross = dual.differences.transposed_times(weight[:, None] * dual.rewards)
    damping *= dual.mass.mean() / beta
    solved = dual.differences.solve(weight, damping, np.column_stack([point.violation, cross]))
    by_violation, by_cross = solved[:, 0], solved[:, 1:]
    reach = dual.rewards.T @ (weight[:, None] * dual.rewards) - cross.T @ by_cross
    along_slack = np.linalg.solve(
        reach @ point.curvature - np.eye(point.slack.size),
        point.slack - point.utilities + cross.T @ by_violation,
    )
    return -by_violation - by_cross @ (point.curvature @ along_slack), along_slack


def evaluate_dual(
    dual: LinearDual, beta: float, parameters: Float[np.ndarray, " p"], slack: Float[np.ndarray, " n"]
) -> DualPoint:
    """The dual loss and its derivatives at one point."""
    _, mu, curvature = in_float64(second_order)(dual.aggregation, slack)
    residuals = dual.rewards @ mu + dual.differences.times(parameters)
    value, w, slope = in_float64(_loss)(
        parameters,
        residuals,
        slack,
        dual.zero_utility,
        dual.initial,
        dual.mass,
        np.array([beta]),
        dual.divergence,
        dual.aggregation,
        dual.flow,
    )
    mass = w * dual.mass
    flowing = dual.differences.transposed_times(mass[:, None])
    return DualPoint(
        parameters=parameters,
        slack=slack,
        value=float(value),
        ratio=w,
        slope=slope,
        violation=float(dual.flow.initial_weight) * dual.initial + flowing[:, 0],
        utilities=dual.zero_utility + mass @ dual.rewards,
        multiplier=mu,
        curvature=curvature,
    )


def _loss(
    parameters: Array,
    residuals: Array,
    slack: Array,
    zero_utility: Array,
    initial: Array,
    mass: Array,
    beta: Array,
    divergence: Divergence,
    aggregation: Aggregation,
    flow: Flow,
) -> tuple[Array, Array, Array]:
    """L, the ratios, and their slope in e/β. E[ν(s̃_0)] = E[φ(s̃_0)]·θ, in the loss's own terms."""
    value = dual_loss(
        parameters,
        residuals,
        slack,
        zero_utility,
        initial_weights=initial,
        weights=mass,
        beta=beta[0],
        divergence=divergence,
        aggregation=aggregation,
        flow=flow,
    )
    w, slope = jax.jvp(
        lambda y: ratio(y, jnp.ones_like(beta[0]), divergence),
        (residuals / beta[0],),
        (jnp.ones_like(residuals),),
    )
    return value, w, slope
