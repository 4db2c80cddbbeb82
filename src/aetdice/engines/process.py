"""A worker in a process of its own, the same on every engine; it ends with whoever started it."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from aetdice.engines.task import Task, record_of

LOG = "workers.log"
THREADS = ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""What XLA and libraries of linear algebra read; sums are split over threads, so results depend on it."""
WITHIN = "AETDICE_WORKER"
"""Set in the environment of workers, which begin none themselves."""


class Answer(NamedTuple):
    """What a worker says: it is ready, its task is done or has failed, or nothing because it is lost."""

    state: Any
    words: str


class Worker:
    """A process that does one task at a time."""

    def __init__(self, folder: Path, threads: int) -> None:
        environment = {
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",  # workers may share a device
            **os.environ,
            **dict.fromkeys(THREADS, str(threads)),
            "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path),
            WITHIN: "1",
        }
        self.folder = folder
        with (folder / LOG).open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "aetdice.engines.worker"],  # imports from where we do
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                start_new_session=True,  # Ctrl-C is for whoever started it, who ends it then
            )
        self.device: str | None = None
        """What it computes on, once it is ready."""

    def fileno(self) -> int:
        """To wait for its next answer."""
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def send(self, task: Task, host: str) -> None:
        """Give it a task."""
        request = {"task": record_of(task), "folder": str(self.folder), "host": host}
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it is gone; receiving says so
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()

    def receive(self) -> Answer:
        """Its next answer; waits for it."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.endswith(b"\n"):
            code = self.process.wait()
            return Answer(
                "lost", f"its worker ended with {f'signal {-code}' if code < 0 else f'code {code}'}"
            )
        answer = json.loads(line)
        self.device = answer.get("device", self.device)
        return Answer(answer["state"], answer.get("words", ""))

    def stop(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):  # of a task that it was gone too soon to take
                    pipe.close()
