"""Policies that act, rollouts, and scores: how good a policy is in an environment."""

from aetdice.evaluation.acting import VectorPolicy
from aetdice.evaluation.policy import Policy, load_policy
from aetdice.evaluation.rollout import AnyEnvironment, Situation, sample_returns, sample_returns_of
from aetdice.evaluation.scores import (
    Evaluation,
    evaluate_policy,
    make_objective,
    make_objectives,
    standard_objectives,
    swept_objectives,
    utility_threshold,
)

__all__ = [
    "AnyEnvironment",
    "Evaluation",
    "Policy",
    "Situation",
    "VectorPolicy",
    "evaluate_policy",
    "load_policy",
    "make_objective",
    "make_objectives",
    "sample_returns",
    "sample_returns_of",
    "standard_objectives",
    "swept_objectives",
    "utility_threshold",
]
