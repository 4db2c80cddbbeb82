"""Tasks through an engine: lost ones are begun again, finished ones left alone, progress is told."""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from aetdice.engines.base import Engine, Outcome
from aetdice.engines.process import WITHIN
from aetdice.engines.task import Ended, Task
from aetdice.errors import InputError
from aetdice.learning.folder import REQUEST, read_request
from aetdice.learning.trackers import METRICS
from aetdice.learning.watching import read_metrics
from aetdice.progress import tell

RETRIES = 2
"""How often a task is begun again whose worker was lost."""
LOOK = 1.0
"""Seconds between looks at how far tasks have come."""
SEEN = 90.0
"""Seconds in which a network file system shows what another machine has written."""
PERCENT = 100
TRAINING = 0.9
"""Of a task; the rest is to score what it has trained."""


class Runner:
    """Runs tasks, a list at a time, and knows how much of all is done."""

    def __init__(
        self,
        engine: Engine,
        folder: Path,
        total: int,
        sizes: str,
        retries: int = RETRIES,
        keep: Callable[[], object] = lambda: None,
    ) -> None:
        """All tasks have `total` as the sum of their sizes, which `sizes` is a word for.

        `keep` is called whenever some have come to their end. `InputError` in a worker, which would wait
        for itself.
        """
        if WITHIN in os.environ:
            raise InputError(
                "a worker begins no work of its own: what a file does when it is run belongs under "
                'if __name__ == "__main__", since workers import it'
            )
        self.engine, self.folder, self.keep = engine, folder, keep
        self.retries, self.total, self.sizes, self.done = retries, total, sizes, 0
        self.told: tuple[int, int] | None = None
        self.failed: dict[str, str] = {}
        """Why, by task."""

    def run(self, tasks: Sequence[Task]) -> None:
        """Until every task is done or has failed."""
        losses: dict[str, int] = {}
        open_tasks = {task.name: task for task in tasks if not task.is_done(self.folder)}
        waiting = dict(open_tasks)
        self.done += sum(task.size for task in tasks) - sum(task.size for task in open_tasks.values())
        while open_tasks:
            for task in [each for each in waiting.values() if open_tasks.keys().isdisjoint(each.after)]:
                self.engine.submit(waiting.pop(task.name))
            self._tell(list(open_tasks.values()))
            ended = self.engine.completed(LOOK)
            for task, (state, words) in map(self._seen, ended):
                losses[task.name] = losses.get(task.name, 0) + (state == "lost")
                if state == "lost" and losses[task.name] <= self.retries:
                    self.engine.submit(task)
                    continue
                del open_tasks[task.name]
                self.done += task.size
                if state != "done":
                    again = f" ({losses[task.name]} times)" if state == "lost" else ""
                    self.failed[task.name] = words + again
            if ended:
                self.keep()
        self._tell([])

    def _seen(self, outcome: Outcome) -> Outcome:
        """A task is done once its result is seen from here, too."""
        last = time.monotonic() + SEEN
        while outcome.ended.state == "done" and not outcome.task.is_done(self.folder):
            if time.monotonic() > last:
                folder = self.folder / outcome.task.folder
                words = f"what its worker wrote into {folder} is not seen here"
                return Outcome(outcome.task, Ended("failed", words))
            time.sleep(LOOK)
        return outcome

    def _tell(self, under_way: Sequence[Task]) -> None:
        """What is done, and of all work the share that its steps are."""
        partly = sum(task.size * share_done(self.folder / task.folder) for task in under_way)
        now = self.done, int(PERCENT * (self.done + partly) / self.total)
        if now != self.told:
            tell("% of all work", now[1], PERCENT)  # first: where there are only lines, the other may wait
            tell(self.sizes, now[0], self.total)
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
