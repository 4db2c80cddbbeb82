"""What has been seen of the columns of a recording, and what is decided from it.

Decisions look at values and not at types, so that the same data comes out alike from every format. They
look at no more than `Seen` keeps, so that they are the same for whole columns and for columns in blocks.
"""

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int, Shaped

from aetdice.data.coding import ObservationColumn, Value, listed
from aetdice.data.readers.base import Column, Recording
from aetdice.errors import InputError

MOST_CLASSES = 256
"""Different whole numbers that a column of actions may have to be taken for classes."""
MOST_COMBINATIONS = 4096
ALL = sys.maxsize
"""So many different values that all are listed."""
SMALL, ONLY = 64, 4096
"""Whole-number observations below this are discrete: of several columns, or of the only one."""


class Seen(NamedTuple):
    """What is to be known of a column, or of a block of it, to decide what it is."""

    categories: tuple[Value, ...] | None
    whole: bool
    low: Any
    high: Any
    distinct: Shaped[np.ndarray, " k"] | None
    """The different values in order; None where they are too many, or not asked for."""
    floats: bool

    def merged(self, before: "Seen | None", most: int) -> "Seen":
        """With what was seen before; values are listed as long as they are `most`."""
        if before is None:
            return self
        distinct = None
        if self.distinct is not None and before.distinct is not None:
            both = np.union1d(before.distinct, self.distinct)
            distinct = both if len(both) <= most else None
        return self._replace(
            whole=self.whole and before.whole,
            low=min(self.low, before.low),
            high=max(self.high, before.high),
            distinct=distinct,
        )

    def is_small(self, limit: int) -> bool:
        return bool(self.whole and self.low >= 0 and self.high < limit)

    @property
    def has_classes(self) -> bool:
        """Whole numbers, few of them."""
        return self.whole and self.distinct is not None and len(self.distinct) <= MOST_CLASSES

    @property
    def values(self) -> tuple[Value, ...]:
        """What the different values stand for, in their order."""
        found = [] if self.distinct is None else self.distinct.tolist()
        if self.categories is not None:
            return tuple(self.categories[int(each)] for each in found)
        return tuple(int(each) if each == int(each) else float(each) for each in found)


class Observed(NamedTuple):
    """What the columns of observations are."""

    columns: tuple[ObservationColumn, ...]
    discrete: bool
    codes: dict[int, Shaped[np.ndarray, " k"]]
    """By column the values that are categories."""
    words: str

    @property
    def indicators(self) -> bool:
        """Whether each category gets a number of its own."""
        return not self.discrete and bool(self.codes)


class Acted(NamedTuple):
    """What actions are: vectors; or classes, whole numbers as they are, or combinations of values."""

    vectors: bool
    meanings: tuple[tuple[Value, ...], ...] | None
    distinct: list[Shaped[np.ndarray, " k"]]
    """The different values of every column of combinations."""
    found: list[Int[np.ndarray, " k"]]
    """For the columns up to each one the combinations that occur, by their number among those possible."""
    words: str


class Looks:
    """What has been seen of the columns of recordings, one block of episodes after the other."""

    def __init__(self, recording: Recording) -> None:
        self.source = recording.source
        self.labels, self.plain = _marked(recording, "categories"), _marked(recording, "numbers")
        self.observed_names = [each.name for each in recording.observations]
        self.acted_names = [each.name for each in recording.actions]
        self.observations: dict[int, Seen] = {}
        self.actions: dict[int, Seen] = {}
        self.combinations: set[tuple[Any, ...]] | None = set()
        """Of actions that may be classes; None where they are too many."""

    def at_observation(self, index: int, column: Column, used: Shaped[np.ndarray, " frames"]) -> None:
        most = ALL if self.is_label(self.observed_names[index], column) else 0
        _look(self.observations, index, column, used, most)

    def at_action(self, index: int, column: Column, used: Shaped[np.ndarray, " steps"]) -> None:
        most = ALL if self.is_label(self.acted_names[index], column) else MOST_CLASSES
        _look(self.actions, index, column, used, most)

    def at_combinations(self, used: Sequence[Shaped[np.ndarray, " steps"]]) -> None:
        """Of all columns of actions, each of which was looked at."""
        if len(used) > 1 and len(used[0]) and self.combinations is not None and all(self.classes()):
            added = _combinations(used)
            both = None if added is None else self.combinations | added
            self.combinations = None if both is None or len(both) > MOST_COMBINATIONS else both

    def is_label(self, name: str, column: Column | Seen) -> bool:
        return column.categories is not None or name in self.labels

    def classes(self) -> list[bool]:
        """Which columns of actions have classes, as far as they were seen."""
        pairs = [(self.acted_names[index], seen) for index, seen in self.actions.items()]
        return [self.is_label(n, each) or (n not in self.plain and each.has_classes) for n, each in pairs]

    def observed(self) -> Observed:
        """The decision on observations."""
        names, seen = self.observed_names, list(self.observations.values())
        coded = {i: each for i, each in enumerate(seen) if self.is_label(names[i], each)}
        columns = tuple(
            ObservationColumn(name, coded[index].values if index in coded else None)
            for index, name in enumerate(names)
        )
        codes: dict[int, Any] = {index: each.distinct for index, each in coded.items()}
        limit = SMALL if len(names) > 1 else ONLY
        numbers = [index for index in range(len(names)) if index not in coded]
        if all(names[index] not in self.plain and seen[index].is_small(limit) for index in numbers):
            counts = [len(codes[i]) if i in codes else int(seen[i].high) + 1 for i in range(len(names))]
            sizes = ", ".join(f"{name} ({count})" for name, count in zip(names, counts, strict=True))
            return Observed(columns, True, codes, f"observations: discrete, values per column: {sizes}")
        shown = "; ".join(f"{names[index]} is one of {listed(each.values)}" for index, each in coded.items())
        words = f"observations: {len(numbers)} columns of numbers{', ' if shown else ''}{shown}"
        return Observed(columns, False, codes, words)

    def acted(self) -> Acted:
        """The decision on actions: classes if every column has some, vectors if none has."""
        names, seen, classes = self.acted_names, list(self.actions.values()), self.classes()
        if not any(classes) or (not all(classes) and not any(each.categories for each in seen)):
            return Acted(True, None, [], [], f"actions: vectors of {len(names)} numbers")
        if not all(classes):
            words, numbers = (
                ", ".join(name for name, each in zip(names, classes, strict=True) if each == kind)
                for kind in (True, False)
            )
            raise InputError(
                f"{self.source}: actions are classes ({words}) and numbers ({numbers}) at once; policies "
                "choose one kind: leave out one of them, or put the numbers into classes"
            )
        said = " (whole numbers, stored as floats)" if any(each.floats for each in seen) else ""
        if len(seen) == 1 and seen[0].categories is None and seen[0].is_small(MOST_CLASSES):
            most = int(seen[0].high)
            return Acted(False, None, [], [], f"actions: {most + 1} classes, 0 to {most}{said}")
        distinct, found, entries = self._entries(names, seen)
        shown = listed([entry[0] if len(entry) == 1 else entry for entry in entries])
        kind = "classes" if len(names) == 1 else f"combinations of {', '.join(names)}"
        words = f"actions: {len(entries)} {kind}: {shown}{said}"
        return Acted(False, tuple(entries), distinct, found, words)

    def _entries(
        self, names: Sequence[str], seen: Sequence[Seen]
    ) -> tuple[list[Any], list[Any], list[tuple[Value, ...]]]:
        """The combinations of classes that occur, in order, and what they stand for."""
        distinct: list[Any] = [each.distinct for each in seen]
        rows: Any = distinct if len(seen) == 1 else list(zip(*(self.combinations or ()), strict=True))
        if self.combinations is None or len(rows[0]) > MOST_COMBINATIONS:
            raise InputError(
                f"{self.source}: actions ({', '.join(names)}) have more than {MOST_COMBINATIONS:,} "
                f"combinations; say --columns numbers={','.join(names)} if they are numbers"
            )
        codes: Any = 0
        found: list[Any] = []
        entries: list[tuple[Value, ...]] = [()]
        for values, row, each in zip(distinct, rows, seen, strict=True):
            # Column by column, and only what occurs: the product of all sizes may be beyond any integer.
            numbers = codes * len(values) + np.searchsorted(values, np.array(row, values.dtype))
            occurs, codes = np.unique(numbers, return_inverse=True)
            pairs = (divmod(code, len(values)) for code in occurs.tolist())
            entries = [(*entries[before], each.values[last]) for before, last in pairs]
            found.append(occurs)
        return distinct, found, entries


def _look(
    known: dict[int, Seen], index: int, column: Column, used: Shaped[np.ndarray, " rows"], most: int
) -> None:
    """Add rows of a column to what is known of it; up to `most` different values are listed."""
    if not len(used):
        return
    whole = _is_whole(used)
    distinct = _distinct(used, most) if most == ALL or (most and whole) else None
    seen = Seen(column.categories, whole, used.min(), used.max(), distinct, used.dtype.kind == "f")
    known[index] = seen.merged(known.get(index), most)


def _distinct(values: Shaped[np.ndarray, " rows"], most: int) -> Shaped[np.ndarray, " k"] | None:
    if most < ALL and len(np.unique(values[:10_000])) > most:
        return None
    found = np.unique(values)
    return found if len(found) <= most else None


def _combinations(columns: Sequence[Shaped[np.ndarray, " rows"]]) -> set[tuple[Any, ...]] | None:
    """Those of the values of several columns; None where they are too many."""
    codes: Any = 0
    entries: list[tuple[Any, ...]] = [()]
    for values in columns:
        distinct, inverse = np.unique(values, return_inverse=True)
        found, codes = np.unique(codes * len(distinct) + inverse, return_inverse=True)
        if len(found) > MOST_COMBINATIONS:
            return None
        pairs, items = (divmod(code, len(distinct)) for code in found.tolist()), distinct.tolist()
        entries = [(*entries[before], items[last]) for before, last in pairs]
    return set(entries)


def _is_whole(values: Shaped[np.ndarray, " rows"]) -> bool:
    if values.dtype.kind != "f":
        return True
    first = values[:1000]  # settles nearly every column that is not whole
    return bool(np.all(first == np.round(first))) and bool(np.all(values == np.round(values)))


def _marked(recording: Recording, mark: str) -> set[str]:
    """The columns of a mark by the names that they have here."""
    columns = recording.columns
    marked = getattr(columns, mark)
    from_file = [*columns.observations, *columns.actions]
    own = [each.name for each in (*recording.observations, *recording.actions)]
    both = dict(zip(from_file, own, strict=True)) if len(from_file) == len(own) else {}
    return {both.get(name, name) for name in marked}
