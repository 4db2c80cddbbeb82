"""The arrays of a recording: its columns as what they were decided to be."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from aetdice.data.looks import Acted, Looks, Observed
from aetdice.data.readers.arrow import check_category
from aetdice.data.readers.base import Column, Recording


class Layout(NamedTuple):
    """Which rows of a recording become which observations and steps."""

    lengths: Int[np.ndarray, " kept"]
    frames: Int[np.ndarray, " frames"] | None
    """The row of every observation; None if they are all rows in order."""
    steps: Bool[np.ndarray, " steps"] | None
    """Which steps are kept; None for all."""


def observations_of(recording: Recording, layout: Layout) -> tuple[Observed, Shaped[np.ndarray, "frames o"]]:
    """What the columns are, and the array: every column is read once."""
    looks = Looks(recording)
    codes: dict[int, Any] = {}
    ready = recording.frames if not looks.labels and layout.frames is None else None
    count = int(layout.lengths.sum()) + len(layout.lengths)
    shape = (count, len(recording.observations))
    array = np.empty(shape, np.float32) if ready is None else _float32(ready)
    for index, (column, used) in enumerate(_observations(recording, layout, looks)):
        looks.at_observation(index, column, used)
        if looks.is_label(recording.observations[index].name, column):
            codes[index] = np.searchsorted(looks.observations[index].distinct, used)  # type: ignore[arg-type]
        elif ready is None:
            array[:, index] = used
    observed = looks.observed()
    return observed, _put_together(observed, array, codes)


def actions_of(recording: Recording, layout: Layout) -> tuple[Acted, Shaped[np.ndarray, "steps *a"]]:
    """What the columns are, and the array: every column is read once."""
    looks = Looks(recording)
    used = look_at_actions(recording, layout, looks)
    acted = looks.acted()
    return acted, _coded_actions(acted, used)


def look_at_observations(recording: Recording, layout: Layout, looks: Looks) -> None:
    """What the columns have, added to what was seen before."""
    for index, (column, used) in enumerate(_observations(recording, layout, looks)):
        looks.at_observation(index, column, used)


def look_at_actions(recording: Recording, layout: Layout, looks: Looks) -> list[Shaped[np.ndarray, " steps"]]:
    """What the columns have, added to what was seen before; and the columns."""
    found = []
    for index, (column, used) in enumerate(_actions(recording, layout, looks)):
        looks.at_action(index, column, used)
        # Numbers need no more than they will have: several columns are in memory here.
        found.append(
            used if index not in looks.actions or looks.classes()[index] else used.astype(np.float32)
        )
    looks.at_combinations(found)
    return found


def coded_observations(
    recording: Recording, layout: Layout, observed: Observed
) -> Shaped[np.ndarray, "frames o"]:
    """The array of a block, decided on as all of them."""
    count = int(layout.lengths.sum()) + len(layout.lengths)
    array, codes = np.empty((count, len(recording.observations)), np.float32), dict[int, Any]()
    for index, (_, used) in enumerate(_observations(recording, layout, None)):
        if index in observed.codes:
            codes[index] = np.searchsorted(observed.codes[index], used)
        else:
            array[:, index] = used
    return _put_together(observed, array, codes)


def coded_actions(recording: Recording, layout: Layout, acted: Acted) -> Shaped[np.ndarray, "steps *a"]:
    """The array of a block, decided on as all of them."""
    return _coded_actions(acted, [used for _, used in _actions(recording, layout, None)])


def _observations(recording: Recording, layout: Layout, looks: Looks | None) -> Iterator[tuple[Column, Any]]:
    """Each column and its rows that are used, checked where it is looked at."""
    rows = recording.lengths + recording.last
    for named in recording.observations:
        column = named.load()
        if looks is not None:
            _check(recording, "observation", named.name, column, rows, looks)
        yield column, column.values if layout.frames is None else column.values[layout.frames]


def _actions(recording: Recording, layout: Layout, looks: Looks | None) -> Iterator[tuple[Column, Any]]:
    for named in recording.actions:
        column = named.load()
        if looks is not None:
            _check(recording, "action", named.name, column, recording.lengths, looks)
        yield column, column.values if layout.steps is None else column.values[layout.steps]


def _put_together(
    observed: Observed, array: Float[np.ndarray, "frames c"], codes: dict[int, Int[np.ndarray, " frames"]]
) -> Shaped[np.ndarray, "frames o"]:
    """Numbers and categories in one array: all whole numbers, or numbers and indicators."""
    if observed.discrete:
        for index, code in codes.items():
            array[:, index] = code
        return array.astype(np.int64)
    if not codes:
        return array
    parts: list[Any] = []
    for index in range(array.shape[1]):
        if index in codes:
            parts.append(codes[index][:, None] == np.arange(len(observed.codes[index]))[None])
        else:
            parts.append(array[:, index : index + 1])
    return np.concatenate(parts, axis=1, dtype=np.float32)


def _coded_actions(
    acted: Acted, used: Sequence[Shaped[np.ndarray, " steps"]]
) -> Shaped[np.ndarray, "steps *a"]:
    if acted.vectors:
        return np.stack(used, axis=1, dtype=np.float32, casting="unsafe")
    if acted.meanings is None:
        return used[0].astype(np.int64)
    codes: Any = 0
    for values, distinct, found in zip(used, acted.distinct, acted.found, strict=True):
        codes = np.searchsorted(found, codes * len(distinct) + np.searchsorted(distinct, values))
    return codes


def _check(
    recording: Recording, what: str, name: str, column: Column, rows: Int[np.ndarray, " n"], looks: Looks
) -> None:
    """Nothing missing or infinite, and no numbers with a slip among words."""
    bad = column.bad()
    if bad is not None and bad.any():
        raise recording.refuse(f"{what} {name!r}", column, int(np.flatnonzero(bad)[0]), rows)
    if column.categories is not None:
        place = partial(_place, recording, rows)
        check_category(column.categories, partial(_first, column), name, place, name in looks.labels)


def _first(column: Column, words: Sequence[int]) -> tuple[int, int]:
    row = int(np.flatnonzero(np.isin(column.values, words))[0])
    return row, int(column.values[row])


def _place(recording: Recording, rows: Int[np.ndarray, " n"], row: int) -> str:
    starts = np.cumsum(rows) - rows
    episode = int(np.searchsorted(starts, row, side="right")) - 1
    return recording.where(episode, row - int(starts[episode]))


def _float32(values: Shaped[np.ndarray, "rows o"]) -> Float[np.ndarray, "rows o"]:
    with np.errstate(over="ignore"):  # refused with its place
        return values.astype(np.float32, copy=False)
