"""Sweeps that take seconds, and an engine in this very process."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aetdice.sweeps.description import description_from
from aetdice.sweeps.engines.base import Outcome
from aetdice.sweeps.job import run_job
from aetdice.sweeps.jobs import Job
from aetdice.sweeps.plan import Plan, begin, plan_of
from aetdice.sweeps.sweeping import Swept, run_on
from aetdice.sweeps.table import PASSING, Rows

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


class InlineEngine:
    """Does every job at once; the first attempts at some are lost."""

    def __init__(self, folder: Path, losing: Mapping[int, int] | None = None) -> None:
        self.folder, self.losing = folder, dict(losing or {})
        self.waiting: list[Job] = []
        self.submitted: list[str] = []

    def submit(self, job: Job) -> None:
        self.waiting.append(job)
        self.submitted.append(job.id)

    def completed(self, seconds: float) -> list[Outcome]:
        job = self.waiting.pop(0)
        number = int(job.id.partition("-")[0])
        if self.losing.get(number, 0):
            self.losing[number] -= 1
            return [Outcome(job, "lost", "its worker ended with signal 9")]
        try:
            run_job(job, self.folder, "here")
        except Exception as error:
            return [Outcome(job, "failed", str(error))]
        return [Outcome(job, "done")]

    def cancel(self) -> None:
        self.waiting.clear()


def run_inline(plan: Plan, folder: Path, losing: Mapping[int, int] | None = None) -> Swept:
    """A sweep in this process."""
    begin(plan, folder)
    return run_on(InlineEngine(folder, losing), plan, folder)


def lasting(rows: Rows) -> Rows:
    """What must be the same on every engine, to the bit."""
    return [{name: value for name, value in row.items() if name not in PASSING} for row in rows]
