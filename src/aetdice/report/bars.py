"""Progress bars on a terminal; in a file of its own, so that Rich is imported only there."""

import sys
from collections.abc import Iterator
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

from aetdice.report.progress import Progress


class SpeedColumn(ProgressColumn):
    """Updates per second, once known."""

    def render(self, task: Task) -> Text:
        return Text("" if task.speed is None else f"{task.speed:.0f}/s")


@contextmanager
def progress_bars() -> Iterator[Progress]:
    """A bar per stage, on stderr."""
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
