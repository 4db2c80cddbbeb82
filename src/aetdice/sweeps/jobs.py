"""A job: one population in one folder, described by JSON that any machine can run."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from aetdice.engines.task import Task

PLAN, JOBS, ROWS = "plan.json", "jobs", "rows.json"
"""In the folder of a sweep: what is to be done, the folder of all jobs' folders, and a job's rows."""


@dataclass(frozen=True)
class Job:
    """All that a population's results depend on."""

    id: str
    dataset: str
    """Its name in the table."""
    origin: Mapping[str, Any]
    sha256: str
    """Of the episodes."""
    horizon: int
    algorithm: str
    objectives: list[dict[str, Any]]
    """Name and record of each."""
    values: dict[str, list[float]]
    """Of the algorithm's own, and learning rates."""
    seeds: list[int]
    settings: dict[str, Any]
    """By group, as files have them."""
    varied: dict[str, Any]
    """Those among them that vary in the sweep, by dotted name."""
    episodes: int
    members: int
    """At least: what is left to the data may come as several."""
    memory: int
    """Bytes it is expected to take."""

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return dict(json.loads(json.dumps(asdict(self))))

    def task(self) -> Task:
        """As an engine does it."""
        own = f"{JOBS}/{self.id}"
        return Task(self.id, "aetdice.sweeps.job:do_job", self.record(), own, f"{own}/{ROWS}", self.members)

    def numbered(self, number: int) -> "Job":
        """With a name by its place in the plan and its contents."""
        content = json.dumps({**self.record(), "id": ""}, sort_keys=True).encode()
        return replace(self, id=f"{number:03d}-{hashlib.sha256(content).hexdigest()[:8]}")


def job_from(record: Mapping[str, Any]) -> Job:
    """The job of a record."""
    return Job(**record)
