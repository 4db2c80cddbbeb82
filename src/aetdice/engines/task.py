"""A task: work in a folder, named by JSON so that any process can do it; done once, by one process alone."""

import importlib
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from aetdice.errors import InputError
from aetdice.locking import alone

ATTEMPTS, LOCK = "attempts.jsonl", "lock"
Work = Callable[[Mapping[str, Any], Path], None]
"""Does what a record says, in the task's own folder, and writes its result whole."""


@dataclass(frozen=True)
class Task:
    """A piece of work, such as a job of a sweep or a part of a study."""

    name: str
    does: str
    """Its work, as `module:function`."""
    record: Mapping[str, Any]
    """What is to be done, as JSON has it."""
    folder: str
    """Its own, within the one that all tasks share."""
    result: str
    """The file there that says it is done."""
    size: int = 1
    """Its share of all work."""
    after: tuple[str, ...] = ()
    """The tasks that must have ended before it begins, where they are to be done, too."""

    def is_done(self, folder: Path) -> bool:
        return (folder / self.result).is_file()


class Ended(NamedTuple):
    """What came of an attempt. A lost one had its worker killed, and can be made again."""

    state: Literal["done", "failed", "lost"]
    words: str = ""


class Attempts(NamedTuple):
    """How often a task was begun, and where last; nothing is known of what was done elsewhere."""

    times: int | None
    host: str | None


def task_from(record: Mapping[str, Any]) -> Task:
    """The task of `record_of`."""
    return Task(**{**record, "after": tuple(record["after"])})


def record_of(task: Task) -> dict[str, Any]:
    """As JSON has it."""
    return dict(json.loads(json.dumps(asdict(task))))


def attempt(task: Task, folder: Path, host: str, work: Work | None = None) -> Ended:
    """What comes of doing it here and now; mistakes of ours are raised."""
    try:
        perform(task, folder, host, work)
    except (InputError, OSError) as error:
        return Ended("failed", str(error))
    return Ended("done")


def perform(task: Task, folder: Path, host: str, work: Work | None = None) -> None:
    """Do it unless it is done; `work` stands in for what the task names."""
    check_shared(folder, host)
    own = folder / task.folder
    own.mkdir(parents=True, exist_ok=True)
    with alone(own / LOCK):
        if task.is_done(folder):
            return
        with (own / ATTEMPTS).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"host": host, "pid": os.getpid(), "time": time.time()}) + "\n")
        (work or work_of(task.does))(task.record, own)


def check_shared(folder: Path, host: str) -> None:
    """`InputError` on a machine that does not see the folder of all tasks."""
    if not folder.is_dir():
        raise InputError(f"{host} does not see {folder}: the folder must be shared by all machines")


def work_of(does: str) -> Work:
    """The function called `module:function`."""
    module, _, name = does.partition(":")
    found: Work = getattr(importlib.import_module(module), name)
    return found


def attempts_in(own: Path) -> Attempts:
    """What the attempts left in a task's own folder."""
    path = own / ATTEMPTS
    if not path.is_file():
        return Attempts(None, None)
    lines = path.read_text(encoding="utf-8").splitlines()
    try:
        return Attempts(len(lines), str(json.loads(lines[-1])["host"]))
    except (ValueError, LookupError, TypeError):  # its worker was killed in the middle of a line
        return Attempts(len(lines), None)
