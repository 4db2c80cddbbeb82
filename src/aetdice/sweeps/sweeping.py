"""`sweep`: from a description to the table of all its members."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from aetdice.data.readers.arrow import pyarrow
from aetdice.engines import engine_for
from aetdice.engines.base import Engine
from aetdice.engines.running import Runner
from aetdice.errors import InputError
from aetdice.learning.table import Rows, arrow_table, write_table
from aetdice.progress import Progress, tell
from aetdice.report.progress import shown
from aetdice.sweeps.description import read_description
from aetdice.sweeps.job import read_rows
from aetdice.sweeps.jobs import JOBS, Job
from aetdice.sweeps.plan import Plan, begin, plan_of
from aetdice.sweeps.searching import members_of_search, search
from aetdice.sweeps.table import rows_of


class Swept(NamedTuple):
    """What came of a sweep."""

    rows: Rows
    failed: dict[str, str]
    """Jobs that came to nothing, and why."""


def sweep(
    description: Mapping[str, Any] | Path | str,
    out: Path | str | None = None,
    *,
    workers: int | None = None,
    engine: str = "local",
    address: str | None = None,
    progress: Progress | bool = True,
) -> Any:
    """Train every combination that a description names, a TOML file or a mapping (docs/sweeps.md).

    Populations are trained as jobs: in so many `workers` processes, by default one per core, or with
    `engine="ray"` on the Ray cluster at `address`. Everything goes to the folder `out`, by default called
    as the file; what is done there is not done again. Returns the Arrow table of `results.parquet`, with a
    row per member; `InputError` if a job came to nothing, after all others have been finished.
    """
    if out is None:
        if isinstance(description, Mapping):
            raise InputError("a sweep that is no file needs a folder: out=…")
        out = Path(description).with_suffix("")
    with shown(progress):
        plan = plan_of(read_description(description))
        for remark in plan.remarks:
            tell(remark, 1, 1)
        swept = run_plan(plan, Path(out), workers=workers, engine=engine, address=address)
    check(swept, Path(out))
    return arrow_table(swept.rows)


def run_plan(plan: Plan, folder: Path, *, workers: int | None, engine: str, address: str | None) -> Swept:
    """Do what is not done yet on an engine, which ends with it."""
    pyarrow()  # before anything is trained that could not be written down
    threads, gpus = plan.description.threads, plan.description.gpus
    running = engine_for(engine, folder, workers=workers, address=address, threads=threads, gpus=gpus)
    try:
        begin(plan, folder)
        return run_on(running, plan, folder)
    finally:
        running.cancel()


def run_on(engine: Engine, plan: Plan, folder: Path) -> Swept:
    """The same on an engine that is there; the table in the folder grows with every job."""
    described, keeping = plan.description, Keeping(folder)
    sought = described.search
    members = members_of_search(plan, sought) if sought else sum(job.members for job in plan.jobs)
    runner = Runner(engine, folder, members, "members", described.retries, keeping.write)

    def run(jobs: Sequence[Job]) -> None:
        keeping.jobs |= {job.id: job for job in jobs}
        runner.run([job.task() for job in jobs])

    if sought:
        search(plan, sought, run, keeping.found_of)
    else:
        run(plan.jobs)
    return Swept(keeping.write(), runner.failed)


def check(swept: Swept, folder: Path) -> None:
    """`InputError` if a job came to nothing."""
    if swept.failed:
        job, words = next(iter(swept.failed.items()))
        raise InputError(
            f"{len(swept.failed)} job(s) came to nothing, the first in {folder / JOBS / job}: {words}"
        )


class Keeping:
    """The table as it grows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.jobs: dict[str, Job] = {}
        self.found: dict[str, Mapping[str, Any]] = {}

    def found_of(self, job: Job) -> Mapping[str, Any] | None:
        """What a job has left, read once."""
        if job.id not in self.found and (rows := read_rows(self.folder, job)) is not None:
            self.found[job.id] = rows
        return self.found.get(job.id)

    def write(self) -> Rows:
        """All rows there are."""
        jobs = list(self.jobs.values())
        for job in jobs:
            self.found_of(job)
        rows = rows_of(self.found, jobs)
        write_table(arrow_table(rows), self.folder)
        return rows
