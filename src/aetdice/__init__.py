"""Offline nonlinear multi-objective reinforcement learning: J = G(E[F(R)])."""

import importlib.util

from aetdice.config import TrainingConfig
from aetdice.data import Columns, Episode, Episodes, augment
from aetdice.datasets import load_dataset, make_env
from aetdice.errors import InputError
from aetdice.estimation import PolicyEstimate, estimate
from aetdice.evaluation import Evaluation, Policy, VectorPolicy, load_policy, make_objective
from aetdice.exact import OfflineProblem, TabularMOMDP, enumerate_space, solve, solve_dual, solve_program
from aetdice.files import versions
from aetdice.learning.loading import load_run
from aetdice.learning.run import Comparison, Member, Run, evaluate
from aetdice.learning.training import resume, train
from aetdice.learning.verdict import Verdict
from aetdice.objectives import (
    Objective,
    Score,
    bsr,
    check_objective,
    cobb_douglas,
    convex,
    esr,
    lsr,
    safe_cobb_douglas,
    ser,
)
from aetdice.serving import export_policy

__version__ = versions()["aetdice"]

__all__ = [
    "Columns",
    "Comparison",
    "Episode",
    "Episodes",
    "Evaluation",
    "InputError",
    "Member",
    "Objective",
    "OfflineProblem",
    "Policy",
    "PolicyEstimate",
    "Run",
    "Score",
    "TabularMOMDP",
    "TrainingConfig",
    "VectorPolicy",
    "Verdict",
    "augment",
    "bsr",
    "check_objective",
    "cobb_douglas",
    "convex",
    "enumerate_space",
    "esr",
    "estimate",
    "evaluate",
    "export_policy",
    "load_dataset",
    "load_policy",
    "load_run",
    "lsr",
    "make_env",
    "make_objective",
    "resume",
    "safe_cobb_douglas",
    "ser",
    "solve",
    "solve_dual",
    "solve_program",
    "train",
]

if importlib.util.find_spec("gymnasium"):
    from aetdice.envs.gymnasium import register_all
    from aetdice.envs.mujoco.adaptor import register_bodies

    register_all()
    register_bodies()
