"""One process at a time at a place, on this machine or another that shares the folder."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

WAIT = 0.5
"""Seconds between looks at a lock that another process holds."""


@contextlib.contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Waits for whoever holds the lock, a file that stays; the lock of a process that is gone is free."""
    try:
        import fcntl
    except ImportError:  # pragma: no cover
        yield  # without file locks, a worker that was given up must really be gone
        return
    with lock.open("a") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(WAIT)
        yield
