"""The engine of a Ray cluster: every job is a task, whose work is done by the same process as on any engine.

Needs the extra `aetdice[ray]`.
"""

import socket
from pathlib import Path
from typing import Any

from aetdice.errors import InputError
from aetdice.sweeps.engines.base import Outcome
from aetdice.sweeps.engines.process import Worker
from aetdice.sweeps.jobs import Job, job_from

_WORKERS: dict[tuple[str, int], Worker] = {}
"""Of this process, which Ray uses for one task after another: a worker that has compiled is kept."""


def work(record: dict[str, Any], folder: str, threads: int) -> dict[str, str]:
    """A task: one job, in a process that ends with this one."""
    import ray

    worker = _WORKERS.get((folder, threads))
    if worker is None:
        worker = _WORKERS[folder, threads] = Worker(Path(folder), threads)
        worker.receive()
    node = ray.get_runtime_context().get_node_id()
    worker.send(job_from(record), f"{socket.gethostname()}, Ray node {node[:8]}")
    state, words = worker.receive()
    if state == "lost":
        _WORKERS.pop((folder, threads)).stop()
    return {"state": state, "words": words}


class RayEngine:
    """Tasks on the cluster at an address, each with so many threads and GPUs."""

    def __init__(self, folder: Path, address: str | None, threads: int, gpus: float) -> None:
        self.ray, self.folder, self.threads = _ray(), folder.resolve(), threads
        self.begun = not self.ray.is_initialized()
        if self.begun:
            address = address or "auto"
            try:
                self.ray.init(address=address, logging_level="ERROR", log_to_driver=False)
            except (ConnectionError, ValueError, RuntimeError) as error:
                raise InputError(
                    f"there is no Ray cluster at {address}: begin one (ray start --head), or give --address"
                ) from error
        self.task = self.ray.remote(num_cpus=threads, num_gpus=gpus, max_retries=0)(work)
        self.working: dict[Any, Job] = {}
        resources = self.ray.cluster_resources()
        for kind, needed in (("CPU", threads), ("GPU", gpus)):
            if resources.get(kind, 0) < needed:
                self.cancel()
                raise InputError(
                    f"the Ray cluster has {resources.get(kind, 0):g} {kind}, and a job needs {needed:g}"
                )

    def submit(self, job: Job) -> None:
        self.working[self.task.remote(job.record(), str(self.folder), self.threads)] = job

    def completed(self, seconds: float) -> list[Outcome]:
        ended, _ = self.ray.wait(list(self.working), num_returns=1, timeout=seconds)
        return [self._outcome(reference, self.working.pop(reference)) for reference in ended]

    def cancel(self) -> None:
        for reference in self.working:
            self.ray.cancel(reference, force=True)
        self.working.clear()
        if self.begun:
            self.ray.shutdown()

    def _outcome(self, reference: Any, job: Job) -> Outcome:
        errors = self.ray.exceptions
        try:
            return Outcome(job, **self.ray.get(reference))
        except (errors.RayTaskError, errors.TaskUnschedulableError) as error:
            return Outcome(job, "failed", str(error))
        except errors.RayError as error:
            return Outcome(job, "lost", f"{type(error).__name__}: {str(error).splitlines()[0]}")


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise InputError(f"Ray is not installed ({error}); pip install 'aetdice[ray]'") from error
    return ray
