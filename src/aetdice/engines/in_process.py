"""The engine of this very process: one task after another."""

import socket
from collections import deque
from pathlib import Path

from aetdice.engines.base import Outcome
from aetdice.engines.task import Task, Work, attempt


class InProcessEngine:
    """Does a task whenever it is asked what has ended; `work` stands in for what tasks name."""

    def __init__(self, folder: Path, work: Work | None = None) -> None:
        self.folder, self.work = folder, work
        self.waiting: deque[Task] = deque()

    def submit(self, task: Task) -> None:
        self.waiting.append(task)

    def completed(self, seconds: float) -> list[Outcome]:
        del seconds
        task = self.waiting.popleft()
        return [Outcome(task, attempt(task, self.folder, socket.gethostname(), self.work))]

    def cancel(self) -> None:
        self.waiting.clear()
