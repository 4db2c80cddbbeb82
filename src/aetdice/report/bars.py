"""Progress bars on a terminal; in a file of its own, so that Rich is imported only there."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

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

from aetdice.progress import Progress
from aetdice.report.progress import SHORT
from aetdice.report.terminal import console


class SpeedColumn(ProgressColumn):
    """Updates per second, once known."""

    def render(self, task: Task) -> Text:
        return Text("" if task.speed is None else f"{task.speed:.0f}/s")


@contextmanager
def progress_bars() -> Iterator[Progress]:
    """A bar per stage, on stderr."""
    columns = (
        TextColumn("{task.description:>18}"),
        BarColumn(24),
        MofNCompleteColumn(),
        SpeedColumn(),
        TimeRemainingColumn(),
    )
    bars, tasks = Bars(*columns, console=console(sys.stderr)), dict[str, Any]()
    begun = time.monotonic()

    def report(stage: str, step: int, total: int, metrics: dict[str, Any]) -> None:
        del metrics
        if stage not in tasks:
            tasks[stage] = bars.add_task(stage, total=total)
        bars.update(tasks[stage], completed=step)
        if time.monotonic() - begun >= SHORT:  # not before, so that an error stands alone
            bars.start()

    try:
        yield report
    finally:
        if bars.live.is_started:
            bars.stop()
