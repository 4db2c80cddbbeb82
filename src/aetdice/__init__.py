"""Offline nonlinear multi-objective reinforcement learning: J = G(E[F(R)])."""

import importlib.util

from aetdice.config import TrainingConfig
from aetdice.data import Episode, Episodes, augment
from aetdice.errors import InputError
from aetdice.exact import OfflineProblem, TabularMOMDP, enumerate_space, solve, solve_dual, solve_program
from aetdice.objectives import (
    Objective,
    bsr,
    check_objective,
    cobb_douglas,
    convex,
    esr,
    lsr,
    safe_cobb_douglas,
    ser,
)
from aetdice.results import versions
from aetdice.training import train

__version__ = versions()["aetdice"]

__all__ = [
    "Episode",
    "Episodes",
    "InputError",
    "Objective",
    "OfflineProblem",
    "TabularMOMDP",
    "TrainingConfig",
    "augment",
    "bsr",
    "check_objective",
    "cobb_douglas",
    "convex",
    "enumerate_space",
    "esr",
    "lsr",
    "safe_cobb_douglas",
    "ser",
    "solve",
    "solve_dual",
    "solve_program",
    "train",
]

if importlib.util.find_spec("gymnasium"):
    from aetdice.envs.bodies.adaptor import register_bodies
    from aetdice.envs.gymnasium import register_all

    register_all()
    register_bodies()
