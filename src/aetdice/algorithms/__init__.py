"""The algorithms by name: AETDICE, OptiDICE and FairDICE are one loss; the others need none or their own."""

from collections.abc import Callable

from aetdice.algorithms.base import Algorithm, Hints, Weighing, WithoutUpdates
from aetdice.algorithms.cloning import cloning
from aetdice.algorithms.dice import aetdice, fairdice, optidice
from aetdice.algorithms.episode_weighting import episode_weighting
from aetdice.algorithms.iql import esr_iql
from aetdice.config import TrainingConfig

ALGORITHMS: dict[str, Callable[[int, TrainingConfig], Algorithm]] = {
    "aetdice": aetdice,
    "optidice": optidice,
    "fairdice": fairdice,
    "esr-iql": esr_iql,
    "episode-weighting": episode_weighting,
    "bc": cloning,
}
"""Every algorithm by name, made from a horizon and a configuration; to be listed here is to be tested."""

__all__ = ["ALGORITHMS", "Algorithm", "Hints", "Weighing", "WithoutUpdates"]
