"""The regularised offline problem through its dual: one ν per augmented state."""

import numpy as np

from aetdice.errors import InputError
from aetdice.exact.differences import SparseDifferences
from aetdice.exact.newton import LinearDual, minimise_dual
from aetdice.exact.offline import OfflineProblem, RegularisedSolution
from aetdice.objectives import ChiSquare, Divergence

MOST_VIOLATION = 1e-5


def solve_dual(
    problem: OfflineProblem,
    beta: float,
    divergence: Divergence | None = None,
    *,
    tolerance: float = 1e-11,
    max_steps: int = 500,
) -> RegularisedSolution:
    """min_{ν, k} L, the dual that AETDICE trains on, to machine precision."""
    dual = LinearDual(
        differences=SparseDifferences(problem.flow_matrix()),
        initial=problem.initial,
        mass=problem.mass,
        rewards=float(problem.flow.reward_scale) * problem.transformed_reward,
        zero_utility=problem.zero_utility,
        aggregation=problem.objective.aggregation,
        divergence=divergence or ChiSquare(),
        flow=problem.flow,
    )
    slack = problem.utilities(np.ones(problem.mass.size))
    point = minimise_dual(
        dual, beta, np.zeros(problem.nodes), slack, tolerance=tolerance, max_steps=max_steps
    )
    if point.error > MOST_VIOLATION:
        raise InputError(
            f"the dual has not converged: it violates the flow by {point.error:.1e}; "
            "allow more max_steps or use a larger beta"
        )
    return RegularisedSolution(
        problem, point.value, point.ratio, point.slack, point.multiplier, point.parameters, point.error
    )
