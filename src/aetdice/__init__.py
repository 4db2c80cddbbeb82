"""Offline nonlinear multi-objective reinforcement learning: J = G(E[F(R)])."""

import aetdice_command

if aetdice_command.is_run_as("aetdice"):
    aetdice_command.stop_at_once()

import importlib
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from aetdice.registration import register_all

if TYPE_CHECKING:
    from aetdice.config import TrainingConfig
    from aetdice.data import Columns, Episode, Episodes, augment
    from aetdice.datasets import load_dataset, make_env
    from aetdice.errors import InputError
    from aetdice.estimation import PolicyEstimate, estimate
    from aetdice.evaluation import Evaluation, Policy, VectorPolicy, load_policy, make_objective
    from aetdice.exact import OfflineProblem, TabularMOMDP, enumerate_space, solve, solve_dual, solve_program
    from aetdice.learning.comparison import OfflineSelection, select
    from aetdice.learning.loading import load_run
    from aetdice.learning.rendering import render
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
    from aetdice.page import write_report
    from aetdice.serving import export_policy
    from aetdice.studies import reproduce
    from aetdice.sweeps import sweep

__version__ = version("aetdice")

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
    "OfflineSelection",
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
    "render",
    "reproduce",
    "resume",
    "safe_cobb_douglas",
    "select",
    "ser",
    "solve",
    "solve_dual",
    "solve_program",
    "sweep",
    "train",
    "write_report",
]

_HOMES = {
    "config": ("TrainingConfig",),
    "data": ("Columns", "Episode", "Episodes", "augment"),
    "datasets": ("load_dataset", "make_env"),
    "errors": ("InputError",),
    "estimation": ("PolicyEstimate", "estimate"),
    "evaluation": ("Evaluation", "Policy", "VectorPolicy", "load_policy", "make_objective"),
    "exact": ("OfflineProblem", "TabularMOMDP", "enumerate_space", "solve", "solve_dual", "solve_program"),
    "learning.comparison": ("OfflineSelection", "select"),
    "learning.loading": ("load_run",),
    "learning.rendering": ("render",),
    "learning.run": ("Comparison", "Member", "Run", "evaluate"),
    "learning.training": ("resume", "train"),
    "learning.verdict": ("Verdict",),
    "objectives": (
        "Objective",
        "Score",
        "bsr",
        "check_objective",
        "cobb_douglas",
        "convex",
        "esr",
        "lsr",
        "safe_cobb_douglas",
        "ser",
    ),
    "page": ("write_report",),
    "serving": ("export_policy",),
    "studies": ("reproduce",),
    "sweeps": ("sweep",),
}
"""Where the public names are: imported when first asked for, since JAX alone takes a second."""


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            globals()[name] = getattr(importlib.import_module(f"aetdice.{module}"), name)
            return globals()[name]
    raise AttributeError(f"module 'aetdice' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]


register_all()
