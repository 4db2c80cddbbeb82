"""What the columns of a recording are: discrete or not, and what their categories are called.

Decisions look at values and not at types, so that the same data comes out alike from every format.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from aetdice.data.coding import ObservationColumn, Value, listed
from aetdice.data.readers.arrow import check_category
from aetdice.data.readers.base import Column, Recording
from aetdice.errors import InputError

MOST_CLASSES = 256
"""Different whole numbers that a column of actions may have to be taken for classes."""
MOST_COMBINATIONS = 4096
SMALL, ONLY = 64, 4096
"""Whole-number observations below this are discrete: of several columns, or of the only one."""


class Layout(NamedTuple):
    """Which rows of a recording become which observations and steps."""

    episodes: Bool[np.ndarray, " n"]
    lengths: Int[np.ndarray, " kept"]
    frames: Int[np.ndarray, " frames"] | None
    """The row of every observation; None if they are all rows in order."""
    steps: Bool[np.ndarray, " steps"] | None
    """Which steps are kept; None for all."""
    words: tuple[str, ...]


def observations_of(
    recording: Recording, layout: Layout
) -> tuple[tuple[ObservationColumn, ...], bool, Shaped[np.ndarray, "frames o"], str]:
    """The columns, whether categories are indicators, the array, and what was decided."""
    names = [each.name for each in recording.observations]
    labels, plain = _marked(recording, "categories"), _marked(recording, "numbers")
    count = int(layout.lengths.sum()) + len(layout.lengths)
    whole, codes, values = True, {}, {}
    ready = recording.frames if not labels and layout.frames is None else None
    array = np.empty((count, len(names)), np.float32) if ready is None else _float32(ready)
    for index, named in enumerate(recording.observations):
        column = named.load()
        _check(recording, f"observation {named.name!r}", column, recording.lengths + recording.last)
        used = column.values if layout.frames is None else column.values[layout.frames]
        if column.categories is not None:
            check_category(column, named.name, partial(_frame, recording), named.name in labels)
        if column.categories is not None or named.name in labels:
            codes[index], values[index] = _coded(used, column.categories)
            continue
        if ready is None:
            array[:, index] = used
        whole = whole and named.name not in plain and _is_small(used, SMALL if len(names) > 1 else ONLY)
    described = tuple(ObservationColumn(name, values.get(index)) for index, name in enumerate(names))
    if whole:
        for index, code in codes.items():
            array[:, index] = code
        discrete = array.astype(np.int64)
        sizes = ", ".join(f"{d.name} ({int(m)})" for d, m in zip(described, discrete.max(0) + 1, strict=True))
        return described, False, discrete, f"observations: discrete, values per column: {sizes}"
    words = f"observations: {len(names) - len(codes)} columns of numbers"
    if not codes:
        return described, False, array, words
    parts: list[Any] = []
    for index in range(len(names)):
        if index in codes:
            parts.append(codes[index][:, None] == np.arange(len(values[index]))[None])
        else:
            parts.append(array[:, index : index + 1])
    shown = "; ".join(f"{names[index]} is one of {listed(each)}" for index, each in values.items())
    return described, True, np.concatenate(parts, axis=1, dtype=np.float32), f"{words}, {shown}"


def actions_of(
    recording: Recording, layout: Layout
) -> tuple[Shaped[np.ndarray, "steps *a"], tuple[tuple[Value, ...], ...] | None, str]:
    """Classes if every column has some, vectors if none has."""
    labels, plain = _marked(recording, "categories"), _marked(recording, "numbers")
    loaded: list[Column] = []
    classes: list[bool] = []
    for named in recording.actions:
        column = named.load()
        _check(recording, f"action {named.name!r}", column, recording.lengths)
        if column.categories is not None:
            check_category(column, named.name, partial(_step, recording), named.name in labels)
        used = column.values if layout.steps is None else column.values[layout.steps]
        marked = column.categories is not None or named.name in labels
        classes.append(marked or (named.name not in plain and _has_classes(used)))
        # Numbers need no more than they will have: several columns are in memory here.
        loaded.append(Column(used if classes[-1] else used.astype(np.float32), column.categories))
    names = [each.name for each in recording.actions]
    if not any(classes) or (not all(classes) and not any(column.categories for column in loaded)):
        vectors = np.stack([column.values for column in loaded], axis=1, dtype=np.float32, casting="unsafe")
        return vectors, None, f"actions: vectors of {len(names)} numbers"
    if not all(classes):
        words, numbers = (
            ", ".join(name for name, each in zip(names, classes, strict=True) if each == kind)
            for kind in (True, False)
        )
        raise InputError(
            f"{recording.source}: actions are classes ({words}) and numbers ({numbers}) at once; policies "
            "choose one kind: leave out one of them, or put the numbers into classes"
        )
    return _classes(recording, names, loaded)


def _classes(
    recording: Recording, names: list[str], loaded: list[Column]
) -> tuple[Int[np.ndarray, " steps"], tuple[tuple[Value, ...], ...] | None, str]:
    """One number per combination of classes that occurs, in order; 0, 1, … stay as they are."""
    floats = any(column.values.dtype.kind == "f" for column in loaded)
    said = " (whole numbers, stored as floats)" if floats else ""
    if len(loaded) == 1 and loaded[0].categories is None and _is_small(loaded[0].values, MOST_CLASSES):
        whole = loaded[0].values.astype(np.int64)
        return whole, None, f"actions: {whole.max() + 1} classes, 0 to {whole.max()}{said}"
    coded = [_coded(column.values, column.categories) for column in loaded]
    actions, entries = np.zeros(len(coded[0][0]), np.int64), [()]
    for codes, values in coded:
        # Column by column, and only what occurs: the product of all sizes may be beyond any integer.
        found, actions = np.unique(actions * len(values) + codes, return_inverse=True)
        if len(found) > MOST_COMBINATIONS:
            raise InputError(
                f"{recording.source}: actions ({', '.join(names)}) have more than {MOST_COMBINATIONS:,} "
                f"combinations; say --columns numbers={','.join(names)} if they are numbers"
            )
        pairs = (divmod(code, len(values)) for code in found.tolist())
        entries = [(*entries[before], values[last]) for before, last in pairs]
    shown = listed([entry[0] if len(entry) == 1 else entry for entry in entries])
    kind = "classes" if len(names) == 1 else f"combinations of {', '.join(names)}"
    return actions.reshape(-1), tuple(entries), f"actions: {len(entries)} {kind}: {shown}{said}"


def _coded(
    values: Shaped[np.ndarray, " rows"], categories: tuple[Value, ...] | None
) -> tuple[Int[np.ndarray, " rows"], tuple[Value, ...]]:
    """Numbers 0, 1, … for the values that occur, in their order, and what they stand for."""
    found, codes = np.unique(values, return_inverse=True)
    if categories is not None:
        return codes.reshape(-1), tuple(categories[int(each)] for each in found)
    return codes.reshape(-1), tuple(int(v) if v == int(v) else float(v) for v in found.tolist())


def _is_whole(values: Shaped[np.ndarray, " rows"]) -> bool:
    if values.dtype.kind != "f":
        return True
    first = values[:1000]  # settles nearly every column that is not whole
    return bool(np.all(first == np.round(first))) and bool(np.all(values == np.round(values)))


def _is_small(values: Shaped[np.ndarray, " rows"], limit: int) -> bool:
    return _is_whole(values) and bool(values.min() >= 0) and bool(values.max() < limit)


def _has_classes(values: Shaped[np.ndarray, " rows"]) -> bool:
    """Whole numbers, few of them."""
    if not _is_whole(values):
        return False
    low, high = float(values.min()), float(values.max())
    return high - low < MOST_CLASSES or len(np.unique(values)) <= MOST_CLASSES


def _marked(recording: Recording, mark: str) -> set[str]:
    """The columns of a mark by the names that they have here."""
    columns = recording.columns
    marked = getattr(columns, mark)
    from_file = [*columns.observations, *columns.actions]
    own = [each.name for each in (*recording.observations, *recording.actions)]
    both = dict(zip(from_file, own, strict=True)) if len(from_file) == len(own) else {}
    return {both.get(name, name) for name in marked}


def _check(recording: Recording, what: str, column: Column, rows: Int[np.ndarray, " n"]) -> None:
    bad = column.bad()
    if bad is not None and bad.any():
        raise recording.refuse(what, column, int(np.flatnonzero(bad)[0]), rows)


def _frame(recording: Recording, row: int) -> str:
    return _place(recording, row, recording.lengths + recording.last)


def _step(recording: Recording, row: int) -> str:
    return _place(recording, row, recording.lengths)


def _place(recording: Recording, row: int, rows: Int[np.ndarray, " n"]) -> str:
    starts = np.cumsum(rows) - rows
    episode = int(np.searchsorted(starts, row, side="right")) - 1
    return recording.where(episode, row - int(starts[episode]))


def _float32(values: Shaped[np.ndarray, "rows o"]) -> Float[np.ndarray, "rows o"]:
    with np.errstate(over="ignore"):  # refused with its place
        return values.astype(np.float32, copy=False)
