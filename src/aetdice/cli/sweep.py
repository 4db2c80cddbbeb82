"""`aetdice sweep`: every combination that a file names, as jobs of an engine; one table comes of it."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from aetdice.cli.options import Shown
from aetdice.engines import ENGINES
from aetdice.learning.table import RESULTS
from aetdice.progress import listening
from aetdice.report.sweeps import jobs_table, sweep_table
from aetdice.sweeps.description import read_description
from aetdice.sweeps.plan import plan_of
from aetdice.sweeps.sweeping import check, run_plan


@dataclass(frozen=True)
class Sweep:
    """Train every combination of a file's datasets, objectives, algorithms, values and seeds.

    What is done already in the folder is not done again, and a job that was cut off goes on.
    """

    description: tyro.conf.Positional[Path]
    """TOML file (docs/sweeps.md)."""
    out: Path | None = None
    """Folder for jobs and results.parquet (default: called as the file)."""
    workers: int | None = None
    """Processes (default: one per core; one for an accelerator)."""
    engine: Literal[*ENGINES] = "local"  # type: ignore[valid-type]
    """Where jobs run: processes of this machine, or a Ray cluster."""
    address: str | None = None
    """Of the Ray cluster (default: the one this machine belongs to)."""
    list: bool = False
    """Name the jobs and stop."""
    shown: Shown = Shown()

    def run(self) -> None:
        # This process only plans: an accelerator's memory is for the workers.
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        with self.shown.progress() as progress, listening(progress):
            plan = plan_of(read_description(self.description))
        self.shown.say(*plan.remarks)
        if self.list:
            planned = {"jobs": [job.record() for job in plan.jobs]}
            self.shown.answer(planned, lambda: jobs_table(plan.jobs) if plan.jobs else [])
            return
        folder = self.out or self.description.with_suffix("")
        with self.shown.progress() as progress, listening(progress):
            swept = run_plan(plan, folder, workers=self.workers, engine=self.engine, address=self.address)
        chosen = [row for row in swept.rows if row["selected"]]
        written = folder / RESULTS
        record = {
            "written": str(written),
            "rows": len(swept.rows),
            "failed": swept.failed,
            "selected": chosen,
        }
        self.shown.answer(record, lambda: sweep_table(chosen, str(written)))
        check(swept, folder)
