"""One process at a time in a folder, on this machine or another that shares it."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

LOCK = "lock"
WAIT = 0.5
"""Seconds between looks at a lock that another process holds."""


@contextlib.contextmanager
def alone(folder: Path, name: str = LOCK) -> Iterator[None]:
    """Waits for whoever works in the folder under that name; the lock of a process that is gone is free."""
    try:
        import fcntl
    except ImportError:  # pragma: no cover
        yield  # without file locks, a worker that was given up must really be gone
        return
    with (folder / name).open("a") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(WAIT)
        yield
