"""The dual of the regularised offline problem, minimised exactly in float64.

Newton's method on L(ν, k), the one DICE loss in slack form: with μ = ∇G(k) and H = ∇²G(k),
∂L/∂ν is the flow's violation and ∂L/∂k = H(x - k), x the utilities the ratios attain. Dropping
∇³G leaves a positive semi-definite curvature, so every step descends, for any concave G, and
the fixed point is k = x.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jaxtyping import Array, Float
from scipy.sparse.linalg import splu

from aetdice.dice import Flow, dual_loss, ratio
from aetdice.errors import InputError
from aetdice.exact.offline import OfflineProblem, RegularisedSolution
from aetdice.objectives import Aggregation, ChiSquare, Divergence, in_float64, second_order

ANNEALING = 10.0


@dataclass(frozen=True, eq=False)
class _Point:
    """L and what Newton's method needs at one (ν, k)."""

    value: float
    ratio: Float[np.ndarray, " pairs"]
    slope: Float[np.ndarray, " pairs"]
    violation: Float[np.ndarray, " nodes"]
    utilities: Float[np.ndarray, " n"]
    multiplier: Float[np.ndarray, " n"]
    curvature: Float[np.ndarray, "n n"]


def solve_dual(
    problem: OfflineProblem,
    beta: float,
    divergence: Divergence | None = None,
    *,
    tolerance: float = 1e-11,
    max_steps: int = 500,
) -> RegularisedSolution:
    """min_{ν, k} L, warm-started along falling β so that small ones stay well behaved."""
    if not beta > 0 or not np.isfinite(beta):
        raise InputError(f"beta must be positive, not {beta}")
    divergence = divergence or ChiSquare()
    nu, k = np.zeros(problem.nodes), problem.utilities(np.ones(problem.mass.size))
    start = max(1.0, float(np.abs(problem.transformed_reward).max()))
    for level in _levels(start, beta):
        last = level == beta
        nu, k = _minimise(problem, level, divergence, nu, k, tolerance if last else 1e-3, max_steps)
    point = _evaluate(problem, beta, divergence, nu, k)
    return RegularisedSolution(problem, point.value, point.ratio, k, point.multiplier, nu)


def _levels(start: float, beta: float) -> list[float]:
    count = max(0, int(np.ceil(np.log(start / beta) / np.log(ANNEALING)))) if beta < start else 0
    return [beta * ANNEALING**i for i in range(count, -1, -1)]


def _minimise(
    problem: OfflineProblem,
    beta: float,
    divergence: Divergence,
    nu: Float[np.ndarray, " nodes"],
    k: Float[np.ndarray, " n"],
    tolerance: float,
    max_steps: int,
) -> tuple[Float[np.ndarray, " nodes"], Float[np.ndarray, " n"]]:
    flow = problem.flow_matrix()
    damping = 1e-8
    point = _evaluate(problem, beta, divergence, nu, k)
    for _ in range(max_steps):
        error = max(np.abs(point.violation).max(), np.abs(point.utilities - k).max())
        if error <= tolerance:
            break
        along_nu, along_k = _direction(problem, flow, point, k, beta, damping)
        slope = point.violation @ along_nu + (point.curvature @ (point.utilities - k)) @ along_k
        step = 1.0
        while step > 1e-10:
            trial = _evaluate(problem, beta, divergence, nu + step * along_nu, k + step * along_k)
            if trial.value <= point.value + 1e-4 * step * slope + 1e-15 * abs(point.value):
                break
            step /= 2
        else:
            if damping > 1e6:
                break
            damping *= 100
            continue
        nu, k, point = nu + step * along_nu, k + step * along_k, trial
        damping = max(1e-14, damping / 10) if step > 0.5 else damping * 3
    return nu, k


def _direction(
    problem: OfflineProblem,
    flow: sp.csr_array,
    point: _Point,
    k: Float[np.ndarray, " n"],
    beta: float,
    damping: float,
) -> tuple[Float[np.ndarray, " nodes"], Float[np.ndarray, " n"]]:
    """The Newton step: a sparse system in ν, the few slacks eliminated by a Schur complement."""
    weight = problem.mass * point.slope / beta
    rewards = float(problem.flow.reward_scale) * problem.transformed_reward
    system = (flow.T @ sp.diags_array(weight) @ flow).tocsc()
    diagonal = damping * problem.mass.mean() / beta
    factor = splu((system + sp.diags_array(np.full(problem.nodes, diagonal))).tocsc())
    cross = flow.T @ (weight[:, None] * rewards)
    solved = factor.solve(np.column_stack([point.violation, cross]))
    by_violation, by_cross = solved[:, 0], solved[:, 1:]
    reach = rewards.T @ (weight[:, None] * rewards) - cross.T @ by_cross
    size = k.size
    along_k = np.linalg.solve(
        reach @ point.curvature - np.eye(size), k - point.utilities + cross.T @ by_violation
    )
    return -by_violation - by_cross @ (point.curvature @ along_k), along_k


def _evaluate(
    problem: OfflineProblem,
    beta: float,
    divergence: Divergence,
    nu: Float[np.ndarray, " nodes"],
    k: Float[np.ndarray, " n"],
) -> _Point:
    aggregation, flow = problem.objective.aggregation, problem.flow
    _, mu, curvature = in_float64(second_order)(aggregation, k)
    residuals = (
        float(flow.reward_scale) * problem.transformed_reward @ mu
        + float(flow.discount) * (problem.successor @ nu)
        - nu[problem.node]
    )
    value, w, slope = in_float64(_loss)(
        nu,
        residuals,
        k,
        problem.zero_utility,
        problem.initial,
        problem.mass,
        np.array([beta]),
        divergence,
        aggregation,
        flow,
    )
    mass = w * problem.mass
    violation = (
        float(flow.initial_weight) * problem.initial
        + float(flow.discount) * (problem.successor.T @ mass)
        - np.bincount(problem.node, mass, minlength=problem.nodes)
    )
    return _Point(float(value), w, slope, violation, problem.utilities(w), mu, curvature)


def _loss(
    nu: Array,
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
    """L, the ratios, and their slope in e/β."""
    value = dual_loss(
        nu,
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
