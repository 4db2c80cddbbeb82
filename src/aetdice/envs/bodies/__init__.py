"""The MuJoCo bodies of D4MORL; stepping one needs the extra `aetdice[mujoco]`."""

from aetdice.envs.bodies.body import BODIES, Body, find_body
from aetdice.envs.bodies.rules import Move
from aetdice.envs.bodies.stepper import BatchedBody

__all__ = ["BODIES", "BatchedBody", "Body", "Move", "find_body"]
