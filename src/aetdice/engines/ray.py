"""The engine of a Ray cluster: each of Ray's tasks is one of ours, done by the same process as elsewhere.

Needs the extra `aetdice[ray]`.
"""

import json
import os
import socket
from pathlib import Path
from typing import Any

from aetdice.engines.base import Outcome
from aetdice.engines.process import Worker
from aetdice.engines.task import Ended, Task, check_shared, record_of, task_from
from aetdice.errors import InputError

KNOCK = 10.0
"""Seconds in which a cluster answers."""
_KEPT: dict[tuple[Any, ...], Worker] = {}
"""The worker of this process, which Ray uses for one task after another: one that has compiled is kept."""


def work(record: str, folder: str, threads: int) -> tuple[str, str]:
    """One task, given as JSON, in a process that ends with this one; its state, and words."""
    import ray

    host = f"{socket.gethostname()}, Ray node {ray.get_runtime_context().get_node_id()[:8]}"
    try:
        check_shared(Path(folder), host)
    except InputError as error:
        return "failed", str(error)
    kind = folder, threads, os.environ.get("CUDA_VISIBLE_DEVICES")  # a task may be given another GPU
    if kind not in _KEPT:
        _forget()
        _KEPT[kind] = Worker(Path(folder), threads)
        _KEPT[kind].receive()
    worker = _KEPT[kind]
    worker.send(task_from(json.loads(record)), host)
    state, words = worker.receive()
    if state == "lost":
        _forget()
    return state, words


def _forget() -> None:
    while _KEPT:
        _KEPT.popitem()[1].stop()


class RayEngine:
    """Ray's tasks on the cluster at an address, each with so many threads and GPUs."""

    def __init__(self, folder: Path, address: str | None, threads: int, gpus: float) -> None:
        self.ray, self.folder, self.threads = _ray(), folder.resolve(), threads
        self.begun = not self.ray.is_initialized()
        if self.begun:
            address = address or "auto"
            try:
                _knock(address)
                self.ray.init(address=address, logging_level="ERROR", log_to_driver=False)
            except (OSError, ValueError, RuntimeError) as error:
                raise InputError(
                    f"there is no Ray cluster at {address} ({str(error).splitlines()[0]}): begin one (ray "
                    "start --head), or give its --address"
                ) from error
        self.work = self.ray.remote(num_cpus=threads, num_gpus=gpus, max_retries=0)(work)
        self.working: dict[Any, Task] = {}
        resources = self.ray.cluster_resources()
        for kind, needed in (("CPU", threads), ("GPU", gpus)):
            if resources.get(kind, 0) < needed:
                self.cancel()
                raise InputError(
                    f"the Ray cluster has {resources.get(kind, 0):g} {kind}, and a task needs {needed:g}"
                )

    def submit(self, task: Task) -> None:
        self.working[self.work.remote(json.dumps(record_of(task)), str(self.folder), self.threads)] = task

    def completed(self, seconds: float) -> list[Outcome]:
        ended, _ = self.ray.wait(list(self.working), num_returns=1, timeout=seconds)
        return [self._outcome(reference, self.working.pop(reference)) for reference in ended]

    def cancel(self) -> None:
        for reference in self.working:
            self.ray.cancel(reference, force=True)
        self.working.clear()
        if self.begun:
            self.ray.shutdown()

    def _outcome(self, reference: Any, task: Task) -> Outcome:
        errors = self.ray.exceptions
        try:
            return Outcome(task, Ended(*self.ray.get(reference)))
        except (errors.RayTaskError, errors.TaskUnschedulableError) as error:
            return Outcome(task, Ended("failed", str(error)))
        except errors.RayError as error:
            words = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            return Outcome(task, Ended("lost", words))


def _knock(address: str) -> None:
    """`OSError` where nobody listens at HOST:PORT, of which Ray itself would be sure after minutes only."""
    host, _, port = address.rpartition(":")
    if host and "/" not in host and port.isdecimal():
        socket.create_connection((host, int(port)), KNOCK).close()


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise InputError(f"Ray is not installed ({error}); pip install 'aetdice[ray]'") from error
    return ray
