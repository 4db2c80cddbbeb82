"""Jobs through an engine: lost ones are begun again, finished ones left alone, progress is told."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from aetdice.errors import InputError
from aetdice.learning.folder import REQUEST, read_request
from aetdice.learning.trackers import METRICS
from aetdice.learning.watching import read_metrics
from aetdice.progress import tell
from aetdice.sweeps.engines.base import Engine, Outcome
from aetdice.sweeps.job import read_rows
from aetdice.sweeps.jobs import JOBS, Job

LOOK = 1.0
"""Seconds between looks at how far jobs have come."""
SEEN = 90.0
"""Seconds in which a network file system shows what another machine has written."""
PERCENT = 100
TRAINING = 0.9
"""Of a job; the rest is to score what it has trained."""


class Runner:
    """Runs jobs, a list at a time, and knows how much of all is done."""

    def __init__(
        self, engine: Engine, folder: Path, retries: int, members: int, keep: Callable[[], object]
    ) -> None:
        """`members` are those of all jobs; `keep` is called whenever some have come to their end."""
        self.engine, self.folder, self.keep = engine, folder, keep
        self.retries, self.members, self.done = retries, members, 0
        self.told: tuple[int, int] | None = None
        self.failed: dict[str, str] = {}
        """Why, by job."""

    def run(self, jobs: Sequence[Job]) -> None:
        """Until every job is done or has failed."""
        losses: dict[str, int] = {}
        open_jobs = {job.id: job for job in jobs if read_rows(self.folder, job) is None}
        self.done += sum(job.members for job in jobs) - sum(job.members for job in open_jobs.values())
        for job in open_jobs.values():
            self.engine.submit(job)
        while open_jobs:
            self._tell(list(open_jobs.values()))
            ended = self.engine.completed(LOOK)
            for job, state, words in map(self._seen, ended):
                losses[job.id] = losses.get(job.id, 0) + (state == "lost")
                if state == "lost" and losses[job.id] <= self.retries:
                    self.engine.submit(job)
                    continue
                del open_jobs[job.id]
                self.done += job.members
                if state != "done":
                    again = f" ({losses[job.id]} times)" if state == "lost" else ""
                    self.failed[job.id] = words + again
            if ended:
                self.keep()
        self._tell([])

    def _seen(self, outcome: Outcome) -> Outcome:
        """A job is done once its rows are seen from here, too."""
        last = time.monotonic() + SEEN
        while outcome.state == "done" and read_rows(self.folder, outcome.job) is None:
            if time.monotonic() > last:
                folder = self.folder / JOBS / outcome.job.id
                return Outcome(outcome.job, "failed", f"what its worker wrote into {folder} is not seen here")
            time.sleep(LOOK)
        return outcome

    def _tell(self, under_way: Sequence[Job]) -> None:
        """Members that are done, and of all work the share that their steps are."""
        partly = sum(job.members * share_done(self.folder / JOBS / job.id) for job in under_way)
        now = self.done, int(PERCENT * (self.done + partly) / self.members)
        if now != self.told:
            tell("members", now[0], self.members)
            tell("% of all work", now[1], PERCENT)
        self.told = now


def share_done(folder: Path) -> float:
    """How far the training in a folder has come, by its files: up to `TRAINING`."""
    if not (folder / REQUEST).is_file():
        return 0.0
    try:
        totals = read_request(folder).get("stages", {})
        steps = {row["stage"]: row["step"] for row in read_metrics(folder / METRICS)}
    except (InputError, OSError):
        return 0.0  # cut off within a line, say; how far it is, is no reason to stop
    known = sum(totals.values())
    taken = sum(min(steps.get(name, 0), total) for name, total in totals.items())
    return TRAINING * taken / known if known else 0.0
