"""How far a training has come, on stderr: bars on a terminal, now and then a line elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Progress = Callable[[str, int, int, dict[str, Any]], None]
"""Called after each chunk with the stage, the step, the total and the metrics."""
PATIENCE = 20.0
"""Seconds between lines."""


@contextmanager
def console_progress() -> Iterator[Progress]:
    """Progress on whatever stderr is."""
    if not sys.stderr.isatty():
        yield lines()
        return
    from aetdice.report.bars import progress_bars

    with progress_bars() as report:
        yield report


def lines(patience: float = PATIENCE) -> Progress:
    """A line when a stage ends, and between at most every `patience` seconds."""
    begun = last = time.monotonic()

    def report(stage: str, step: int, total: int, metrics: dict[str, Any]) -> None:
        nonlocal last
        del metrics
        now = time.monotonic()
        if step < total and now - last < patience:
            return
        last = now
        print(f"{stage} {step}/{total}, {now - begun:.0f} s", file=sys.stderr, flush=True)

    return report
