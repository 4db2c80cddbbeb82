"""How far a training has come, on stderr: bars on a terminal, now and then a line elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from aetdice.keeping import Report

PATIENCE = 20.0
"""Seconds between lines."""


class SpeedColumn(ProgressColumn):
    """Updates per second, once known."""

    def render(self, task: Task) -> Text:
        return Text("" if task.speed is None else f"{task.speed:.0f}/s")


@contextmanager
def progress() -> Iterator[Report]:
    """Reports go to whatever stderr is."""
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
    progress, tasks = Progress(*columns, console=Console(file=sys.stderr)), dict[str, Any]()

    def report(stage: str, step: int, total: int, metrics: dict[str, Any]) -> None:
        del metrics
        progress.start()  # not before there is something to show, so that an error stands alone
        if stage not in tasks:
            tasks[stage] = progress.add_task(stage, total=total)
        progress.update(tasks[stage], completed=step)

    try:
        yield report
    finally:
        if tasks:
            progress.stop()


def lines(patience: float = PATIENCE) -> Report:
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
