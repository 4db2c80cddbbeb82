"""Exact answers: tabular MOMDPs, certified optima, and the regularised offline problem."""

from aetdice.exact.augmented import AugmentedSpace, enumerate_space
from aetdice.exact.momdp import TabularMOMDP
from aetdice.exact.offline import OfflineProblem, RegularisedSolution
from aetdice.exact.offline_dual import solve_dual
from aetdice.exact.optimum import Optimum, solve
from aetdice.exact.program import solve_program
from aetdice.exact.tabular_policy import ReturnDistribution, TabularPolicy, uniform_policy

__all__ = [
    "AugmentedSpace",
    "OfflineProblem",
    "Optimum",
    "RegularisedSolution",
    "ReturnDistribution",
    "TabularMOMDP",
    "TabularPolicy",
    "enumerate_space",
    "solve",
    "solve_dual",
    "solve_program",
    "uniform_policy",
]
