"""Environments: pure JAX, and Gymnasium ids where Gymnasium is installed."""

from collections.abc import Callable

from aetdice.envs.dispatch import Dispatch
from aetdice.envs.environment import Environment, FiniteEnvironment
from aetdice.envs.fair_taxi import FairTaxi
from aetdice.envs.point_maze import PointMaze, point_maze_2obj, point_maze_3obj
from aetdice.envs.two_step import TwoStep
from aetdice.registration import IDS

ENVIRONMENTS: dict[str, Callable[..., Environment]] = {
    "two-step": TwoStep,
    "fair-taxi": FairTaxi,
    "dispatch": Dispatch,
    "pointmaze-2obj": point_maze_2obj,
    "pointmaze-3obj": point_maze_3obj,
}
"""What makes each environment, by its short name; to be listed here is to be tested."""

__all__ = [
    "ENVIRONMENTS",
    "IDS",
    "Dispatch",
    "Environment",
    "FairTaxi",
    "FiniteEnvironment",
    "PointMaze",
    "TwoStep",
    "point_maze_2obj",
    "point_maze_3obj",
]
