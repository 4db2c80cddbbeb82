"""Where metrics go while a run is under way: JSON lines, TensorBoard, Weights & Biases."""

import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from aetdice.errors import InputError

METRICS = "metrics.jsonl"


@runtime_checkable
class Tracker(Protocol):
    """Takes the metrics of all members after each chunk: one entry per member under each name."""

    def write(self, stage: str, step: int, seconds: float, metrics: Mapping[str, list[Any]]) -> None: ...

    def close(self) -> None: ...


class JsonLines:
    """`metrics.jsonl` in a run's folder: one object per chunk."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / METRICS

    def write(self, stage: str, step: int, seconds: float, metrics: Mapping[str, list[Any]]) -> None:
        row = {"stage": stage, "step": step, "seconds": round(seconds, 3), **metrics}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def close(self) -> None: ...


class TensorBoard:
    """Event files, one folder per member, so that members are curves of one plot."""

    def __init__(self, folder: Path) -> None:
        try:
            from tensorboardX import SummaryWriter
        except ImportError as error:
            raise InputError(
                "TensorBoard files need tensorboardX: pip install 'aetdice[tensorboard]'"
            ) from error
        self.folder, self.open, self.writers = folder, SummaryWriter, dict[int, Any]()

    def write(self, stage: str, step: int, seconds: float, metrics: Mapping[str, list[Any]]) -> None:
        del seconds
        for member, name, value in _scalars(metrics):
            if member not in self.writers:
                self.writers[member] = self.open(str(self.folder / f"member-{member}"))
            self.writers[member].add_scalar(f"{stage}/{name}", value, step)
        for writer in self.writers.values():
            writer.flush()

    def close(self) -> None:
        for writer in self.writers.values():
            writer.close()


class WeightsAndBiases:
    """One run of a W&B project; opt-in, and the only tracker that may talk to a server."""

    def __init__(self, project: str, settings: Mapping[str, Any]) -> None:
        try:
            import wandb
        except ImportError as error:
            raise InputError("Weights & Biases needs wandb: pip install 'aetdice[wandb]'") from error
        self._init = partial(wandb.init, project=project, config=dict(settings))
        self.run: Any = None

    def write(self, stage: str, step: int, seconds: float, metrics: Mapping[str, list[Any]]) -> None:
        if self.run is None:  # not before there is something to log: everything has been checked by then
            self.run = self._init()
        scalars = {f"{stage}/{name}/{member}": value for member, name, value in _scalars(metrics)}
        self.run.log({**scalars, f"{stage}/step": step, "seconds": seconds})

    def close(self) -> None:
        if self.run is not None:
            self.run.finish()


def _scalars(metrics: Mapping[str, list[Any]]) -> Iterator[tuple[int, str, float]]:
    """(member, name, value) of every number; the entries of a vector are numbered."""
    for name, members in metrics.items():
        for member, value in enumerate(members):
            flat = np.ravel(value)
            for i, entry in enumerate(flat):
                yield member, name if np.ndim(value) == 0 else f"{name}_{i}", float(entry)
