"""Newton's method for the dual of any ν that is linear in its parameters, in float64.

With ν(s̃) = φ(s̃)·θ the one DICE loss is convex in θ. Indicators of the states give the tabular
problem; the last hidden layer of a network gives the best ν that its features allow. In slack
form, with μ = ∇G(k) and H = ∇²G(k): ∂L/∂θ is the flow's violation, weighted by the features, and
∂L/∂k = H(x - k), x the utilities the ratios attain. Dropping ∇³G leaves a positive semi-definite
curvature, so every step descends, for any concave G, and the fixed point is k = x.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from aetdice.dice import Flow, dual_loss, ratio, regulariser
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

    @property
    def mean_mass(self) -> float:
        return float(self.mass.mean())

    def parts(self) -> Iterable["LinearDual"]:
        """All of it at once."""
        return (self,)


@dataclass(frozen=True, eq=False)
class PartedDual:
    """The dual of a dataset that is not in memory at once: a sum over parts of its steps, loaded in turn."""

    load: Callable[[], Iterable[LinearDual]]
    initial: Float[np.ndarray, " p"]
    mean_mass: float
    zero_utility: Float[np.ndarray, " n"]
    aggregation: Aggregation
    divergence: Divergence
    flow: Flow

    def parts(self) -> Iterable[LinearDual]:
        return self.load()


@dataclass(frozen=True, eq=False)
class DualPoint:
    """L at one (θ, k), with what a Newton step needs; of parts the ratios are not kept."""

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
    dual: LinearDual | PartedDual,
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
    largest = max(float(np.abs(part.rewards).max()) for part in dual.parts()) if anneal else 0.0
    start = max(1.0, largest) if anneal else beta
    count = max(0, int(np.ceil(np.log(start / beta) / np.log(ANNEALING))))
    for level in (beta * ANNEALING**i for i in range(count, -1, -1)):
        goal = tolerance if level == beta else 1e-3
        point = _descend(dual, level, parameters, slack, goal, max_steps)
        parameters, slack = point.parameters, point.slack
    return point


def _descend(
    dual: LinearDual | PartedDual,
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
    dual: LinearDual | PartedDual, point: DualPoint, beta: float, damping: float
) -> tuple[Float[np.ndarray, " p"], Float[np.ndarray, " n"]]:
    """The Newton step: one system in θ, the few slacks eliminated by a Schur complement."""
    gram: Any = None
    cross, reach = np.zeros((point.parameters.size, point.slack.size)), np.zeros_like(point.curvature)
    for part in dual.parts():
        slope = point.slope if dual is part else _ratios_at(part, beta, point.parameters, point.multiplier)[2]
        weight = part.mass * slope / beta
        cross += part.differences.transposed_times(weight[:, None] * part.rewards)
        reach += part.rewards.T @ (weight[:, None] * part.rewards)
        added = part.differences.gram(weight)
        gram = added if gram is None else gram + added
    damping *= dual.mean_mass / beta
    solved = part.differences.solve(gram, damping, np.column_stack([point.violation, cross]))
    by_violation, by_cross = solved[:, 0], solved[:, 1:]
    along_slack = np.linalg.solve(
        (reach - cross.T @ by_cross) @ point.curvature - np.eye(point.slack.size),
        point.slack - point.utilities + cross.T @ by_violation,
    )
    return -by_violation - by_cross @ (point.curvature @ along_slack), along_slack


def evaluate_dual(
    dual: LinearDual | PartedDual,
    beta: float,
    parameters: Float[np.ndarray, " p"],
    slack: Float[np.ndarray, " n"],
) -> DualPoint:
    """The dual loss and its derivatives at one point."""
    _, mu, curvature = in_float64(second_order)(dual.aggregation, slack)
    value = float(
        in_float64(_loss_of_starts)(
            parameters, slack, dual.zero_utility, dual.initial, dual.divergence, dual.aggregation, dual.flow
        )
    )
    violation, utilities = float(dual.flow.initial_weight) * dual.initial, dual.zero_utility
    w = slope = np.zeros(0)
    for part in dual.parts():
        regularised, ratios, slopes = _ratios_at(part, beta, parameters, mu)
        mass = ratios * part.mass
        value += float(regularised)
        violation = violation + part.differences.transposed_times(mass[:, None])[:, 0]
        utilities = utilities + mass @ part.rewards
        if part is dual:
            w, slope = ratios, slopes
    return DualPoint(parameters, slack, value, w, slope, violation, utilities, mu, curvature)


def _ratios_at(
    part: LinearDual, beta: float, parameters: Float[np.ndarray, " p"], mu: Float[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, ""], Float[np.ndarray, " steps"], Float[np.ndarray, " steps"]]:
    residuals = part.rewards @ mu + part.differences.times(parameters)
    return in_float64(_ratios)(residuals, part.mass, np.array([beta]), part.divergence)


def _ratios(residuals: Array, mass: Array, beta: Array, divergence: Divergence) -> tuple[Array, Array, Array]:
    """Σ d^D βφ*₊(e/β), the ratios, and their slope in e/β."""
    w, slope = jax.jvp(
        lambda y: ratio(y, jnp.ones_like(beta[0]), divergence),
        (residuals / beta[0],),
        (jnp.ones_like(residuals),),
    )
    return regulariser(residuals, mass, beta[0], divergence), w, slope


def _loss_of_starts(
    parameters: Array,
    slack: Array,
    zero_utility: Array,
    initial: Array,
    divergence: Divergence,
    aggregation: Aggregation,
    flow: Flow,
) -> Array:
    """The dual loss but for its sum over steps. E[ν(s̃_0)] = E[φ(s̃_0)]·θ, in the loss's own terms."""
    none = jnp.zeros(0, parameters.dtype)
    return dual_loss(
        parameters,
        none,
        slack,
        zero_utility,
        initial_weights=initial,
        weights=none,
        beta=jnp.ones((), parameters.dtype),
        divergence=divergence,
        aggregation=aggregation,
        flow=flow,
    )
