"""How far a training has come, on stderr: bars on a terminal, now and then a line elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from aetdice.progress import Progress, listening

PATIENCE = 20.0
"""Seconds between lines."""
SHORT = 2.0
"""Seconds in which nobody needs to be told anything."""


@contextmanager
def console_progress() -> Iterator[Progress]:
    """Progress on whatever stderr is."""
    from aetdice.report.terminal import is_plain

    if is_plain(sys.stderr):
        yield lines()
        return
    from aetdice.report.bars import progress_bars

    with progress_bars() as report:
        yield report


@contextmanager
def shown(progress: Progress | bool) -> Iterator[Progress | None]:
    """Progress on the console, by a function of one's own, or not at all; within it `tell` is heard."""
    shows = console_progress() if progress is True else nullcontext(progress or None)
    with shows as show, listening(show):
        yield show


def lines(patience: float = PATIENCE, short: float = SHORT) -> Progress:
    """A line when a stage ends, and between at most every `patience` seconds; none for what is short."""
    begun = last = time.monotonic()
    clock = Clock()

    def report(stage: str, step: int, total: int, metrics: dict[str, Any]) -> None:
        nonlocal last
        del metrics
        now = time.monotonic()
        left = clock.left(stage, step, total, now)
        if now - begun < short or (step < total and now - last < patience):
            return
        last = now
        rest = f", {duration(left)} left" if left else ""
        print(f"{stage} {step}/{total}, {duration(now - begun)}{rest}", file=sys.stderr, flush=True)

    return report


class Clock:
    """How long a stage will still take, by its pace since it was first heard of."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[int, float]] = {}

    def left(self, stage: str, step: int, total: int, now: float) -> float | None:
        """Seconds; None while nothing is known, since the first steps compile."""
        first, began = self._first.setdefault(stage, (step, now))
        return None if step <= first else (now - began) / (step - first) * (total - step)


def duration(seconds: float | int) -> str:
    """Such as 48 s, 3 min 20 s or 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
