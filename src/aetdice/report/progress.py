"""How far a training has come, on stderr: bars on a terminal, now and then a line elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars
from rich.text import Text

Progress = Callable[[str, int, int, dict[str, Any]], None]
"""Called after each chunk with the stage, the step, the total and the metrics."""
PATIENCE = 20.0
"""Seconds between lines."""


class SpeedColumn(ProgressColumn):
    """Updates per second, once known."""

    def render(self, task: Task) -> Text:
        return Text("" if task.speed is None else f"{task.speed:.0f}/s")


@contextmanager
def console_progress() -> Iterator[Progress]:
    """Progress on whatever stderr is."""
    if not sys.stderr.isatty():
        yield lines()
        return
    columns = (
        TextColumn("{task.description:>16}"),
        BarColumn(),
        MofNCompleteColumn(),
        SpeedColumn(),
        TimeRemainingColumn(),
    )
    bars, tasks = Bars(*columns, console=Console(file=sys.stderr)), dict[str, Any]()

    def report(stage: str, step: int, total: int, metrics: dict[str, Any]) -> None:
        del metrics
        bars.start()  # not before there is something to show, so that an error stands alone
        if stage not in tasks:
            tasks[stage] = bars.add_task(stage, total=total)
        bars.update(tasks[stage], completed=step)

    try:
        yield report
    finally:
        if tasks:
            bars.stop()


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
