"""What an engine is: jobs go in, and come out done, failed or lost."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from aetdice.sweeps.jobs import Job


class Outcome(NamedTuple):
    """What became of a job. A lost one had its worker killed, and can be begun again."""

    job: Job
    state: Literal["done", "failed", "lost"]
    words: str = ""


@runtime_checkable
class Engine(Protocol):
    """Runs jobs somewhere."""

    def submit(self, job: Job) -> None:
        """Take a job, to be begun when there is room."""

    def completed(self, seconds: float) -> Sequence[Outcome]:
        """The jobs that have ended since; if none has, after so many seconds none."""

    def cancel(self) -> None:
        """End all workers, whatever they do."""
