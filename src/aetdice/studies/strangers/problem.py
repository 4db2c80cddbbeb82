"""A problem with a known optimum or reference, and which half of the suite it belongs to."""

import hashlib
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from aetdice.data import Episodes
from aetdice.evaluation import Policy
from aetdice.objectives import Chain, Objective, Threshold, bsr
from aetdice.objectives.parameters import Parameter

DEVELOPMENT, LOOKED_AT, HELD_BACK = "development", "looked-at", "held-back"
SEEN = frozenset(
    (
        "taxi-1", "taxi-2", "taxi-4", "taxi-6", "maze-0", "maze-1", "maze-5", "fishwood", "fishwood-even",
        "four-room", "four-room-small", "fruit-tree-6", "random-1", "random-2", "random-6",
        "reach-line-near", "reach-plane", "reach-plane-gusts", "swimmer",
        "taxi-8", "taxi-10", "maze-6", "maze-12", "maze-13", "deep-sea-treasure-short", "four-room-long",
        "reach-line-far", "reach-plane-breeze", "reach-plane-few",
        "taxi-13", "maze-14", "resource-gathering-short", "breakable-bottles-short", "random-8", "random-13",
        "random-14", "random-15", "hopper-expert", "swimmer-expert",
        "taxi-18", "maze-16", "maze-17", "deep-sea-treasure-long", "random-16", "random-18",
        "reach-plane-wide", "halfcheetah-expert",
    )
)  # fmt: skip
"""Problems that were held back until they were looked at, on 2026-11-18 or 19; since then anybody may.

The second set begins with taxi-8, the third with taxi-18.
"""
ALPHAS = {"ESR": 0.0, "BSR 0.5": 0.5, "SER": 1.0}


class World(NamedTuple):
    """What a problem is measured with; made when that is done, because optima take their time."""

    collect: Callable[[int, int], Episodes]
    """So many episodes of its behaviours, from a seed."""
    reference: Callable[[Objective, Episodes], float]
    """The best J that is known: exact, or at least what the data holds."""
    score: Callable[[Policy, Objective], float]
    """J of a policy: exact, or of sampled episodes."""


class Extra(NamedTuple):
    """What a problem needs beside the library: an extra, and the module that it brings."""

    name: str
    module: str

    @property
    def installed(self) -> bool:
        return importlib.util.find_spec(self.module) is not None


@dataclass(frozen=True)
class Problem:
    """One problem of the suite."""

    name: str
    family: str
    objectives: Mapping[str, Objective]
    """They share their form, so that one population trains for all of them."""
    episodes: int
    """Of its dataset, in full."""
    facts: Mapping[str, Any]
    """All that its world is made of, as JSON has it."""
    world: Callable[[], World]
    extra: Extra | None = None

    @property
    def half(self) -> str:
        return half_of(self.name)

    @property
    def part(self) -> str:
        """The name of its part, which says its half."""
        return f"{self.half}-{self.name}"


def half_of(name: str) -> str:
    """Development if the SHA-256 of the name is even, read as a number; if odd held back, until looked at."""
    if not _digest(name) % 2:
        return DEVELOPMENT
    return LOOKED_AT if name in SEEN else HELD_BACK


def seed_of(name: str) -> int:
    """Of the problem's layout and of its data."""
    return _digest(name) % 2**31


def fair_objectives(
    threshold: float = 1.0, level: Parameter = 0.0, scale: Parameter = 1.0
) -> dict[str, Objective]:
    """ESR, BSR(0.5) and SER of (R - level) / scale, F continued below the threshold."""
    plain = {name: bsr(alpha, threshold=threshold) for name, alpha in ALPHAS.items()}
    if level == 0.0 and scale == 1.0:
        return plain
    margin = Threshold(level, scale)
    return {
        name: Objective(Chain((margin, each.utility)), each.aggregation, each.label, each.shown)
        for name, each in plain.items()
    }


def _digest(name: str) -> int:
    return int(hashlib.sha256(name.encode()).hexdigest(), 16)
