"""The MuJoCo bodies of D4MORL; stepping one needs the extra `aetdice[mujoco]`."""

from aetdice.envs.mujoco.body import BODIES, Body, find_body
from aetdice.envs.mujoco.rules import Move
from aetdice.envs.mujoco.stepper import BatchedBody

__all__ = ["BODIES", "BatchedBody", "Body", "Move", "find_body"]
