"""Values of columns: constant ones, wild ones, numbers that are labels, and what hardly occurs."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Int, Shaped

from aetdice.data.coding import listed
from aetdice.data.doctor.findings import Finding
from aetdice.data.episodes import Episodes
from aetdice.data.successors import frames_before

LOOKED_AT = 100_000
"""Rows from which distinct values and quartiles are told."""
LARGE, FAR = 1e6, 1e3
FEW = 10
FEWEST = 3
"""Episodes over which a column must grow to be taken for a counter."""


class Numbers(NamedTuple):
    """A column of numbers, or of the numbers of categories."""

    role: str
    name: str
    values: Shaped[np.ndarray, " rows"]
    words: tuple[object, ...] | None = None


def columns_of(episodes: Episodes) -> Iterator[Numbers]:
    """Observations and actions, a column at a time."""
    coding = episodes.coding
    frames = episodes.observations.reshape(len(episodes.observations), -1)
    start = 0
    described = [] if coding is None else list(coding.observations)
    indicators = coding is not None and coding.indicators
    for entry in described:
        coded = indicators and entry.values is not None
        width = len(entry.values or ()) if coded else 1
        part = frames[:, start : start + width]
        yield Numbers("observation", entry.name, part.argmax(1) if coded else part[:, 0], entry.values)
        start += width
    for index in range(start, frames.shape[1]):
        yield Numbers("observation", f"obs_{index}", frames[:, index])
    actions = episodes.actions.reshape(episodes.steps, -1)
    if coding is not None and coding.actions is not None:
        meanings = tuple(entry[0] if len(entry) == 1 else entry for entry in coding.actions)
        yield Numbers("action", ", ".join(coding.action_names), actions[:, 0], meanings)
        return
    for index in range(actions.shape[1]):
        name = coding.action_names[index] if coding else f"action_{index}"
        yield Numbers("action", name, actions[:, index])


def value_findings(episodes: Episodes) -> list[Finding]:
    """What is odd about single columns."""
    found: list[Finding] = []
    for column in columns_of(episodes):
        where = f"{column.role} {column.name!r}"
        if column.words is not None or (column.role == "action" and column.values.dtype.kind in "iu"):
            found += _rare(column, where)
        else:
            found += _odd(episodes, column, where)
            found += _counter(episodes, column, where)
    return found


def _counter(episodes: Episodes, column: Numbers, where: str) -> list[Finding]:
    """A column that grows from row to row and from episode to episode: no new episode has such values."""
    if column.role != "observation" or len(episodes) < FEWEST:
        return []
    rows = frames_before(episodes.select(np.arange(FEWEST)))  # settles nearly every column
    if not _grows(column.values[rows]) or not _grows(column.values[frames_before(episodes)]):
        return []
    words = "grows with every row of the log, as a row number or a date does: a new episode has other values"
    return [Finding("counter", "warning", where, f"{words}; leave it out")]


def _grows(values: Shaped[np.ndarray, " rows"]) -> bool:
    return bool(np.all(values[1:] > values[:-1]))


def _rare(column: Numbers, where: str) -> list[Finding]:
    counts = np.bincount(column.values.astype(np.int64), minlength=len(column.words or ()))
    names: list[object] = list(column.words or range(len(counts)))
    found = []
    for kind, matches, words in (
        ("never", counts == 0, "never occur; a policy should not be offered them"),
        ("once", counts == 1, "occur once: nothing can be learned about them"),
    ):
        if matches.any():
            which = [names[i] for i in np.flatnonzero(matches)]
            found.append(
                Finding(f"{column.role} {kind}", "warning", where, f"{listed(which)} {words}", len(which))
            )
    if np.sum(counts > 0) == 1:
        found.append(Finding("constant", "warning", where, f"always {names[int(np.argmax(counts))]}"))
    return found


def _odd(episodes: Episodes, column: Numbers, where: str) -> list[Finding]:
    values = column.values
    low, high = float(values.min()), float(values.max())
    if low == high:
        return [Finding("constant", "warning", where, f"always {low:g}: it says nothing; leave it out")]
    sample = np.sort(values[:: max(1, len(values) // LOOKED_AT)].astype(np.float64))
    first, median, third = sample[[len(sample) // 4, len(sample) // 2, 3 * len(sample) // 4]]
    row = int(np.argmax(values)) if abs(high - median) >= abs(low - median) else int(np.argmin(values))
    place = place_of(episodes, row, column.role)
    spread = max(third - first, np.abs(sample - median).mean() / 100, 1e-12)
    distance = abs(float(values[row]) - median)
    if max(abs(low), abs(high)) > LARGE:
        words = f"reaches {values[row]:g} ({place}), half of its values lie in {first:g} to {third:g}"
        return [Finding("scale", "warning", where, words)]
    if distance > FAR * spread and np.sum(np.abs(sample - median) > FAR * spread) <= max(
        3, len(sample) // 1000
    ):
        words = f"reaches {values[row]:g} ({place}), far from the rest ({first:g} to {third:g})"
        return [Finding("outlier", "warning", where, words)]
    distinct = sample[np.concatenate([[True], np.diff(sample) > 0])]
    if (
        column.role == "observation"
        and values.dtype.kind == "f"
        and len(distinct) <= FEW < len(sample) // FEW
    ):
        shown = listed([f"{value:g}" for value in distinct])
        words = f"has few values ({shown}): if they are labels, say --columns categories={column.name}"
        return [Finding("categorical", "note", where, words)]
    return []


def place_of(episodes: Episodes, row: int, role: str) -> str:
    """The episode and the step of a row."""
    extra: Int[np.ndarray, " n"] = np.arange(len(episodes)) * (role == "observation")
    starts = episodes.starts + extra
    episode = int(np.searchsorted(starts, row, side="right")) - 1
    return f"episode {episode}, step {row - int(starts[episode])}"
