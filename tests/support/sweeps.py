"""Sweeps that take seconds, and an engine that loses tasks."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aetdice.engines.base import Outcome
from aetdice.engines.in_process import InProcessEngine
from aetdice.engines.task import Ended, Task
from aetdice.learning.table import PASSING, Rows
from aetdice.sweeps.description import description_from
from aetdice.sweeps.plan import Plan, begin, plan_of
from aetdice.sweeps.sweeping import Swept, run_on

TAXI: dict[str, Any] = {
    "name": "taxi", "data": "fair-taxi", "episodes": 20, "horizon": 6, "size": 3, "start": [1, 1],
    "origins": [[0, 0], [2, 2]], "destinations": [[0, 1], [2, 1]],
}  # fmt: skip
CLONING: dict[str, Any] = {
    "datasets": [TAXI],
    "objectives": ["esr"],
    "algorithms": ["bc"],
    "settings": {
        "network": {"hidden": [8], "fourier": 1},
        "extraction": {"steps": 40, "batch": 8},
        "trainer": {"chunk": 20},
    },
    "episodes": 20,
}
"""The shortest training there is."""


def planned(**changes: Any) -> Plan:
    """The plan of `CLONING` with some keys changed."""
    return plan_of(description_from({**CLONING, **changes}))


class LosingEngine(InProcessEngine):
    """The first attempts at some tasks, by their place in the plan, are lost."""

    def __init__(self, folder: Path, losing: Mapping[int, int] | None = None) -> None:
        super().__init__(folder)
        self.losing = dict(losing or {})
        self.submitted: list[str] = []

    def submit(self, task: Task) -> None:
        super().submit(task)
        self.submitted.append(task.name)

    def completed(self, seconds: float) -> list[Outcome]:
        number = int(self.waiting[0].name.partition("-")[0])
        if not self.losing.get(number, 0):
            return super().completed(seconds)
        self.losing[number] -= 1
        return [Outcome(self.waiting.popleft(), Ended("lost", "its worker ended with signal 9"))]


def run_inline(plan: Plan, folder: Path, losing: Mapping[int, int] | None = None) -> Swept:
    """A sweep in this process."""
    begin(plan, folder)
    return run_on(LosingEngine(folder, losing), plan, folder)


def lasting(rows: Rows) -> Rows:
    """What must be the same on every engine, to the bit."""
    return [{name: value for name, value in row.items() if name not in PASSING} for row in rows]
