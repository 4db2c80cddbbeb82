"""What an engine is: tasks go in, and come out done, failed or lost."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from aetdice.engines.task import Ended, Task


class Outcome(NamedTuple):
    """What became of a task."""

    task: Task
    ended: Ended


@runtime_checkable
class Engine(Protocol):
    """Does tasks somewhere."""

    def submit(self, task: Task) -> None:
        """Take a task, to be begun when there is room."""

    def completed(self, seconds: float) -> Sequence[Outcome]:
        """The tasks that have ended since; if none has, after so many seconds none."""

    def cancel(self) -> None:
        """End all workers, whatever they do."""
