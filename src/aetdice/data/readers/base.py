"""What every reader hands over: columns as they were recorded, episode by episode."""

import abc
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from aetdice.data.coding import Value, coding_from
from aetdice.data.columns import Columns
from aetdice.data.episodes import Episode, Episodes
from aetdice.errors import InputError


class Column(NamedTuple):
    """One column: numbers, or the numbers of categories."""

    values: Shaped[np.ndarray, " rows"]
    categories: tuple[Value, ...] | None = None
    """What the numbers stand for; None where they are numbers."""
    missing: Bool[np.ndarray, " rows"] | None = None

    def bad(self) -> Bool[np.ndarray, " rows"] | None:
        """Where no finite number (in float32) or category stands; None if nowhere."""
        values = self.values
        if values.dtype.kind != "f":
            return self.missing
        with np.errstate(invalid="ignore"):
            low, high = (values.min(), values.max()) if len(values) else (0.0, 0.0)
        largest = np.finfo(np.float32).max
        if -largest <= low and high <= largest:  # false for NaN
            return self.missing
        wrong = ~(np.abs(values) <= largest)
        return wrong if self.missing is None else wrong | self.missing

    def shown(self, row: int) -> str:
        """An entry, for messages."""
        value = self.values[row]
        if (self.missing is not None and self.missing[row]) or value != value:
            return "missing"
        if self.categories:
            return repr(self.categories[int(value)])
        if value.dtype.kind != "f":
            return str(int(value)) if value.dtype.kind == "b" else str(value)
        short = f"{value:g}"
        return short if float(short) == value else str(value).removesuffix(".0")


class Named(NamedTuple):
    """A column that is read when it is needed."""

    name: str
    load: Callable[[], Column]


@dataclass(frozen=True, eq=False)
class Recording:
    """Episodes as a file has them, before anything is decided about them.

    Observations have a row for every step, and one more where the observation after an episode's
    last step is known (`last`); actions and rewards a row for every step.
    """

    source: str
    lengths: Int[np.ndarray, " n"]
    terminated: Bool[np.ndarray, " n"]
    truncated: Bool[np.ndarray, " n"]
    last: Bool[np.ndarray, " n"]
    observations: Sequence[Named]
    actions: Sequence[Named]
    rewards: Float[np.ndarray, "steps m"]
    objectives: tuple[str, ...]
    where: Callable[[int, int], str]
    """How a step of an episode is called in messages."""
    columns: Columns = Columns()
    notes: tuple[str, ...] = ()
    flagless: int = 0
    """How many episodes end without a flag."""
    ends: str | None = None
    """What the file says of truncated ends, if it does."""
    frames: Shaped[np.ndarray, "rows o"] | None = None
    """The observations in one array, where that is how they come."""

    @property
    def remembered(self) -> dict[str, Any]:
        """The columns as a run remembers them: of a table nothing is guessed again."""
        return self.columns.settled() if self.columns.rewards else self.columns.record()

    def refuse(self, what: str, column: Column, row: int, rows: Int[np.ndarray, " n"]) -> InputError:
        """Say which entry of a column is not one; `rows` is how many of its rows each episode has."""
        starts = np.cumsum(rows) - rows
        episode = int(np.searchsorted(starts, row, side="right")) - 1
        place = self.where(episode, row - int(starts[episode]))
        return InputError(f"{place}: {what} is {column.shown(row)}, but must be finite")


class Saved(NamedTuple):
    """Episodes that were written here: nothing about them is left to decide."""

    episodes: Episodes


class Format(abc.ABC):
    """A kind of file: how to know, read and write it."""

    name: ClassVar[str]
    words: ClassVar[str]
    """What it is, in a few words."""
    suffixes: ClassVar[tuple[str, ...]] = ()
    """How the names of its files end."""

    def recognises(self, path: Path) -> bool:
        """Whether a path that exists looks like one."""
        return path.is_file() and path.suffix.lower() in self.suffixes

    @abc.abstractmethod
    def read(self, path: Path, columns: Columns) -> Recording | Saved:
        """What a file holds; `InputError` says what is wrong with it."""

    def raw(self, path: Path, columns: Columns) -> Iterable[Episode]:
        """The episodes of arrays as they are, whatever their values: for a doctor who was refused them."""
        del path, columns
        return ()

    @abc.abstractmethod
    def write(self, path: Path, episodes: Episodes) -> None:
        """A new file, whole or not at all."""


def facts_of(episodes: Episodes) -> dict[str, Any]:
    """What files keep beside the arrays."""
    coding = None if episodes.coding is None else episodes.coding.record()
    return {"ends": episodes.ends, "horizon": episodes.horizon, "coding": coding}


def saved_with(episodes: Episodes, facts: Any, source: str, columns: Columns) -> Saved | None:
    """The episodes with what their file kept beside them; None if it kept no coding."""
    if not isinstance(facts, Mapping) or "ends" not in facts or facts.get("coding") is None:
        return None
    if columns.record():
        raise InputError(f"{source} keeps its columns; name them where it is made, with aetdice convert")
    try:
        coding = coding_from(facts["coding"])
    except InputError as error:
        raise InputError(f"{source}: {error}") from error
    horizon = facts.get("horizon")
    width = sum(
        len(column.values) if column.values is not None and coding.indicators else 1
        for column in coding.observations
    )
    if episodes.observations.shape[1:] != (width,) or not isinstance(horizon, int | None):
        raise InputError(f"{source}: what it keeps about its columns does not fit its arrays")
    return Saved(replace(episodes, coding=coding, ends=facts["ends"], horizon=horizon))
