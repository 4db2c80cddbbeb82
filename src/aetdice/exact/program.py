"""The regularised offline problem as a convex program: the reference for every DICE solver.

Needs the extra `aetdice[convex]`.
"""

import warnings
from typing import Any

import numpy as np

from aetdice.errors import InputError
from aetdice.exact.offline import OfflineProblem, RegularisedSolution
from aetdice.objectives import (
    KL,
    Aggregation,
    AlphaFair,
    ChiSquare,
    Divergence,
    Fair,
    Linear,
    SmoothMinimum,
    SoftChiSquare,
)

NOISE = 1e-10
"""Visits that an interior-point method leaves where there are none."""


def solve_program(
    problem: OfflineProblem, beta: float, divergence: Divergence | None = None
) -> RegularisedSolution:
    """max G(F(0) + Σ d r̃) - β Σ d^D φ(d/d^D) subject to the flow, by an interior-point method."""
    cp = _cvxpy()
    if not beta > 0 or not np.isfinite(beta):
        raise InputError(f"beta must be positive, not {beta}")
    divergence = divergence or ChiSquare()
    visits = cp.Variable(problem.mass.size, nonneg=True)
    scale = float(problem.flow.reward_scale)
    utilities = problem.zero_utility + scale * (problem.transformed_reward.T @ visits)
    entering = float(problem.flow.initial_weight) * problem.initial
    flow = problem.flow_matrix().T @ visits == -entering
    try:
        gain, own = _aggregate(cp, problem.objective.aggregation, utilities)
    except (ValueError, TypeError) as error:
        raise InputError(f"G cannot be written as a convex program ({error}); solve_dual takes it") from error
    penalty, more = _penalty(cp, divergence, visits, problem.mass)
    program = cp.Problem(cp.Maximize(gain - beta * penalty), [flow, *own, *more])
    tight = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11, "max_iter": 500}
    with warnings.catch_warnings():
        # At these tolerances the solver may call itself inaccurate with nine digits right.
        warnings.simplefilter("ignore", UserWarning)
        program.solve(solver=cp.CLARABEL, **tight)
    if program.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        raise InputError(f"the convex program is {program.status}")
    found = np.asarray(visits.value)
    ratio = np.where(found > NOISE, found, 0) / problem.mass
    slack = problem.utilities(ratio)
    return RegularisedSolution(
        problem=problem,
        value=problem.primal_value(ratio, beta, divergence),
        ratio=ratio,
        slack=slack,
        multiplier=np.full_like(slack, np.nan),
        nu=np.asarray(flow.dual_value),
        violation=float(np.abs(problem.flow_matrix().T @ found + entering).max()),
    )


def _cvxpy() -> Any:
    try:
        import cvxpy
    except ImportError as error:
        raise InputError(
            "the convex program needs cvxpy: pip install 'aetdice[convex]' (solve_dual does without)"
        ) from error
    return cvxpy


def _aggregate(cp: Any, aggregation: Aggregation, k: Any) -> tuple[Any, list[Any]]:
    """G(k) as a disciplined concave expression, with the constraints of its auxiliary variables."""
    n = k.shape[0]
    match aggregation:
        case Linear(weights=weights):
            return np.broadcast_to(weights, n) @ k, []
        case AlphaFair(fair=fair, weights=weights, offset=offset):
            values, constraints = _fair(cp, fair, k)
            return np.broadcast_to(weights, n) @ (values + float(offset)), constraints
        case SmoothMinimum(sharpness=sharpness, weights=weights):
            share = np.broadcast_to(weights, n) / np.broadcast_to(weights, n).sum()
            s = float(sharpness)
            return -cp.log_sum_exp(-s * k + np.log(share)) / s, []
    raise InputError(
        f"no convex-program form is known for G = {aggregation.name}; solve_dual takes any concave G"
    )


def _fair(cp: Any, fair: Fair, k: Any) -> tuple[Any, list[Any]]:
    """u_a(k) = max u_a(above) + continuation(below) over k = above + below, above ≥ τ, below ≤ 0."""
    a, tau = float(fair.a), float(fair.threshold)
    above, below = cp.Variable(k.shape[0]), cp.Variable(k.shape[0])
    constraints = [above + below == k, above >= tau, below <= 0]
    if a == 1:
        upper = cp.log(above)
    elif a == 0:
        upper = above - 1
    else:
        upper = (cp.power(above, 1 - a) - 1) / (1 - a)
    curvature = a * tau ** (-a - 1) if fair.continuation == "quadratic" else 0.0
    return upper + tau**-a * below - curvature / 2 * cp.square(below), constraints


def _penalty(cp: Any, divergence: Divergence, visits: Any, mass: np.ndarray) -> tuple[Any, list[Any]]:
    """Σ d^D φ(d/d^D)."""
    match divergence:
        case ChiSquare():
            return cp.sum_squares(cp.multiply(mass**-0.5, visits) - mass**0.5) / 2, []
        case KL():
            return cp.sum(cp.kl_div(visits, mass)), []
        case SoftChiSquare():
            # KL below w = 1 and χ² above it: the cheapest split of the mass at w = 1.
            below, above = cp.Variable(visits.shape[0]), cp.Variable(visits.shape[0])
            split = [below + above == visits, below <= mass, above >= 0]
            penalty = cp.sum(cp.kl_div(below, mass)) + cp.sum_squares(cp.multiply(mass**-0.5, above)) / 2
            return penalty, split
    raise InputError(f"no convex-program form is known for the divergence {type(divergence).__name__}")
