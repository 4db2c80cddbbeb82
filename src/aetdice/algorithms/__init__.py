"""The algorithms by name. AETDICE, OptiDICE and FairDICE are one loss; beside it ESR-IQL and cloning."""

from collections.abc import Callable

from aetdice.algorithms.base import Algorithm, Hints, Weighing
from aetdice.algorithms.cloning import cloning
from aetdice.algorithms.dice import aetdice, fairdice, optidice
from aetdice.algorithms.iql import esr_iql
from aetdice.config import TrainingConfig

ALGORITHMS: dict[str, Callable[[int, TrainingConfig], Algorithm]] = {
    "aetdice": aetdice,
    "optidice": optidice,
    "fairdice": fairdice,
    "esr-iql": esr_iql,
    "bc": cloning,
}
"""Every algorithm by name, made from a horizon and a configuration; to be listed here is to be tested."""

__all__ = ["ALGORITHMS", "Algorithm", "Hints", "Weighing"]
