"""The engine of this machine: so many processes, each with one task at a time."""

import select
import socket
from collections import deque
from pathlib import Path

from aetdice.engines.base import Outcome
from aetdice.engines.process import LOG, Worker
from aetdice.engines.task import Ended, Task
from aetdice.engines.worker import READY
from aetdice.errors import InputError
from aetdice.hardware import cores

CPU = "cpu"
STARTS = 3
"""How many workers in a row may be lost before they are ready: one may be killed, all are not."""


class LocalEngine:
    """`workers` processes; by default one per `threads` cores, or one alone where JAX has an accelerator."""

    def __init__(self, folder: Path, workers: int | None, threads: int) -> None:
        if workers is not None and workers < 1:
            raise InputError(f"at least one worker is needed, not {workers}")
        self.folder, self.threads = folder, threads
        self.most = max(1, cores() // threads) if workers is None else workers
        self.asks = workers is None
        """Whether the first worker still has to say what it computes on."""
        self.unready = 0
        """Workers in a row that were lost before they were ready."""
        self.waiting: deque[Task] = deque()
        self.working: dict[Worker, Task | None] = {}

    def submit(self, task: Task) -> None:
        """One that had to wait comes first: it may use cores while others use a device."""
        (self.waiting.appendleft if task.after else self.waiting.append)(task)

    def completed(self, seconds: float) -> list[Outcome]:
        self._fill()
        ready, _, _ = select.select(list(self.working), [], [], seconds)
        found = [outcome for worker in ready if (outcome := self._heard(worker)) is not None]
        self._fill()
        return found

    def cancel(self) -> None:
        self.waiting.clear()
        for worker in self.working:
            worker.stop()
        self.working.clear()

    def _fill(self) -> None:
        """As many workers as there is work for; a free one gets the next task."""
        most = 1 if self.asks else self.most
        busy = sum(task is not None for task in self.working.values())
        while len(self.working) < min(most, busy + len(self.waiting)):
            self.working[Worker(self.folder, self.threads)] = None
        for worker, task in self.working.items():
            if task is None and self.waiting and worker.device is not None:
                self.working[worker] = given = self.waiting.popleft()
                worker.send(given, socket.gethostname())

    def _heard(self, worker: Worker) -> Outcome | None:
        task, answer = self.working[worker], worker.receive()
        if answer.state == READY:
            if self.asks and worker.device != CPU:
                self.most = 1
            self.asks, self.unready = False, 0
            return None
        if answer.state == "lost":
            worker.stop()
            del self.working[worker]
            self.unready += worker.device is None
            if self.unready == STARTS:
                raise InputError(f"no worker can be started: {answer.words}; see {self.folder / LOG}")
            return None if task is None else Outcome(task, Ended("lost", answer.words))
        assert task is not None
        self.working[worker] = None
        return Outcome(task, Ended(answer.state, answer.words))
