"""Between the chunks of a training: checkpoints, metrics, progress."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import Array, UInt8

from aetdice.errors import InputError
from aetdice.files import load_tree, save_tree
from aetdice.learning.trackers import JsonLines, Tracker
from aetdice.progress import Progress

CHECKPOINT = "checkpoint.npz"
SAVING = 20
"""How many times longer to train than to save, between checkpoints of one stage."""


@runtime_checkable
class Resumable(Protocol):
    """A tree of arrays that knows what it was made from."""

    @property
    def fingerprint(self) -> UInt8[Array, "32"]:
        """Of the arguments: a checkpoint is no use to a run with others."""


S = TypeVar("S", bound=Resumable)


class Checkpointing(Generic[S]):
    """Checkpoints, metrics and progress between chunks."""

    def __init__(
        self, out: Path | str | None, progress: Progress | None, trackers: Sequence[Tracker]
    ) -> None:
        self.out = Path(out) if out else None
        self.progress, self.started, self.trackers = progress, time.perf_counter(), list(trackers)
        self.due = self.started
        if self.out and self.out.exists() and not self.out.is_dir():
            raise InputError(f"{self.out} is a file, not a folder")
        if self.out:
            self.out.mkdir(parents=True, exist_ok=True)
            self.trackers.append(JsonLines(self.out))

    def __enter__(self) -> "Checkpointing[S]":
        return self

    def __exit__(self, *_: object) -> None:
        for tracker in self.trackers:
            tracker.close()

    def resume(self, state: S) -> S:
        path = self.out / CHECKPOINT if self.out else None
        if path is None or not path.exists():
            return state
        saved = load_tree(path, state)
        if not np.array_equal(saved.fingerprint, state.fingerprint):
            raise InputError(f"{path} was written by a run with other data, members or settings")
        return saved

    def after(self, stage: str, step: int, total: int, state: S, metrics: dict[str, Any]) -> None:
        if step == total or time.perf_counter() >= self.due:
            self.save(state)
        self.tell(stage, step, total, metrics)

    def save(self, state: S) -> None:
        if self.out:
            started = time.perf_counter()
            save_tree(self.out / CHECKPOINT, state)
            ended = time.perf_counter()
            self.due = ended + SAVING * (ended - started)

    def tell(self, stage: str, step: int, total: int, metrics: dict[str, Any]) -> None:
        for tracker in self.trackers:
            tracker.write(stage, step, time.perf_counter() - self.started, metrics)
        if self.progress:
            self.progress(stage, step, total, metrics)
