"""Environments: pure JAX, and Gymnasium ids where Gymnasium is installed."""

from aetdice.envs.environment import Environment, FiniteEnvironment
from aetdice.envs.fair_taxi import FairTaxi
from aetdice.envs.two_step import TwoStep

ENVIRONMENTS: dict[str, type[Environment]] = {"two-step": TwoStep, "fair-taxi": FairTaxi}
"""Every environment by its short name; to be listed here is to be registered and tested."""

__all__ = ["ENVIRONMENTS", "Environment", "FairTaxi", "FiniteEnvironment", "TwoStep"]
