"""From a table with a row per step to a recording: episodes, steps, flags, and the last observation."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from aetdice.data.columns import Columns, own_names
from aetdice.data.readers.arrow import Table
from aetdice.data.readers.base import Column, Named, Recording
from aetdice.data.readers.checks import (
    MEND,
    check_closing,
    check_steps,
    flags_at_ends,
    is_flag,
    missing_in,
    odd_in,
    word_in,
)
from aetdice.errors import InputError

EXACT = 2.0**53
"""From here on floats skip whole numbers."""


class Rows(NamedTuple):
    """Where the episodes of a table stand in it."""

    starts: Int[np.ndarray, " n"]
    lasts: Int[np.ndarray, " n"]
    """The last row of every episode."""
    closed: Bool[np.ndarray, " n"]
    """Whether that row has no step, only the observation after it."""
    ids: Column | None

    @property
    def ends(self) -> Int[np.ndarray, " n"]:
        """The row of every episode's last step."""
        return self.lasts - self.closed

    @property
    def lengths(self) -> Int[np.ndarray, " n"]:
        return self.ends - self.starts + 1

    def where(self, table: Table, episode: int, step: int) -> str:
        """How a step is called in messages; the observation after the last one may stand beside it."""
        first = int(self.starts[episode])
        known = "" if self.ids is None else self.ids.shown(first)
        row = min(first + step, int(self.lasts[episode]))
        return f"{table.row(row)} (episode {known or table.before + episode}, step {step})"


def recording_of(table: Table, given: Columns) -> Recording:
    """The episodes of a table whose rows are in order; whatever is not is refused with its row."""
    return recorded(table, columns_of(table, given))[0]


def columns_of(table: Table, given: Columns) -> Columns:
    """Which column is what."""
    try:
        columns = given.guessed(table.names)
    except InputError as error:
        raise InputError(f"{table.source}: {error}") from error
    if table.rows == 0:
        raise InputError(f"{table.source} has no rows")
    return columns


def start_of_last(table: Table, columns: Columns) -> int:
    """The row where the last episode begins, which may go on after the table's end."""
    _, closing = _steps(table, columns)
    flags = [_flag(table, name, closing) for name in (columns.terminated, columns.truncated)]
    ids = None if columns.episode is None else _identities(table, columns.episode)
    return int(_starts(table, ids, closing, flags[0] | flags[1])[-1])


def recorded(table: Table, columns: Columns) -> tuple[Recording, Rows]:
    """The episodes, and where they stand in the table."""
    rewards, closing = _steps(table, columns)
    flags = [_flag(table, name, closing) for name in (columns.terminated, columns.truncated)]
    rows = _rows(table, columns, closing, flags[0] | flags[1])
    terminated, truncated = (
        flags_at_ends(table, name, each, rows.ends, rows.lasts)
        for name, each in zip(("terminated", "truncated"), flags, strict=True)
    )
    follows = _following(table, columns, rows)
    keep = slice(None) if not closing.any() else ~closing
    recording = Recording(
        source=table.source,
        lengths=rows.lengths,
        terminated=terminated,
        truncated=truncated | ~terminated,
        last=np.ones(len(rows.starts), bool) if follows else rows.closed,
        observations=[
            Named(own, partial(_observed, table, rows, name, follows.get(name)))
            for own, name in zip(own_names(columns.observations), columns.observations, strict=True)
        ],
        actions=[
            Named(own, partial(_taken, table, name, keep))
            for own, name in zip(own_names(columns.actions), columns.actions, strict=True)
        ],
        rewards=rewards[keep],
        objectives=own_names(columns.rewards),
        where=partial(rows.where, table),
        columns=columns,
        notes=_notes(table, columns),
        flagless=int(np.sum(~terminated & ~truncated)),
        ends=table.ends,
    )
    return recording, rows


def _notes(table: Table, columns: Columns) -> tuple[str, ...]:
    notes = [f"columns: {columns.text()}"]
    if unused := columns.unused(table.names):
        notes.append(f"columns not used: {', '.join(unused)}")
    return tuple(notes)


def _rows(
    table: Table, columns: Columns, closing: Bool[np.ndarray, " rows"], ended: Bool[np.ndarray, " rows"]
) -> Rows:
    ids = None if columns.episode is None else _identities(table, columns.episode)
    starts = _starts(table, ids, closing, ended)
    lasts = np.append(starts[1:], table.rows) - 1
    check_closing(table, closing, lasts)
    if columns.step is not None:
        check_steps(table, columns.step, starts)
    rows = Rows(starts, lasts, closing[lasts], ids)
    if (empty := np.flatnonzero(rows.lengths == 0)).size:
        raise InputError(f"{table.row(int(starts[empty[0]]))}: the episode has no step, only an observation")
    return rows


def _following(table: Table, columns: Columns, rows: Rows) -> dict[str, str]:
    """The column of the observation after a step, for each of those before: by name, or else in order."""
    here, there = columns.observations, columns.next_observations
    if not there:
        return {}
    if len(there) != len(here):
        raise InputError(
            f"{table.source}: there are {len(here)} observations but {len(there)} next observations "
            f"({', '.join(there)})"
        )
    if rows.closed.any():
        raise InputError(
            f"{table.source}: last rows without an action and next observations are one too many"
        )
    named = {name: f"next_{name}" for name in here}
    return named if set(named.values()) == set(there) else dict(zip(here, there, strict=True))


def _observed(table: Table, rows: Rows, name: str, after: str | None) -> Column:
    return table.load(name) if after is None else _with_next(table, name, after, rows.starts, rows.ends)


def _taken(table: Table, name: str, keep: Any) -> Column:
    column = table.load(name)
    missing = None if column.missing is None else column.missing[keep]
    return Column(
        column.values[keep], column.categories, None if missing is None or not missing.any() else missing
    )


def _steps(table: Table, columns: Columns) -> tuple[Float[np.ndarray, "rows m"], Bool[np.ndarray, " rows"]]:
    """Rewards, and which rows have neither them nor actions: those hold the last observation."""
    rewards = np.empty((table.rows, len(columns.rewards)))
    gaps: list[Any] = []
    for index, name in enumerate(columns.rewards):
        column = table.load(name)
        if column.categories is not None:
            raise word_in(table, f"reward column {name!r}", column, "a number")
        rewards[:, index] = column.values
        gaps.append(missing_in(column))
    gaps += [missing_in(table.load(name)) for name in columns.actions]
    everywhere = all(gap is not None for gap in gaps)
    closing = np.logical_and.reduce(gaps) if everywhere else np.zeros(table.rows, bool)
    for name, gap in zip(columns.rewards, gaps, strict=False):
        if gap is not None and (wrong := np.flatnonzero(gap & ~closing)).size:
            raise InputError(f"{table.row(int(wrong[0]))}: reward column {name!r} is missing")
    infinite = ~np.isfinite(rewards) & ~closing[:, None]
    if infinite.any():
        row, index = np.argwhere(infinite)[0]
        raise InputError(
            f"{table.row(int(row))}: reward column {columns.rewards[index]!r} is {rewards[row, index]}, "
            "but must be finite"
        )
    return rewards, closing


def _flag(table: Table, name: str | None, closing: Bool[np.ndarray, " rows"]) -> Bool[np.ndarray, " rows"]:
    """A column of true and false; where the row has no step it may be missing."""
    if name is None:
        return np.zeros(table.rows, bool)
    column = table.load(name)
    values = column.values
    if column.categories is not None:
        words = np.array([str(word).strip().lower() for word in column.categories])
        odd = np.array([not is_flag(word) for word in words])
        if odd.any():
            raise odd_in(table, f"column {name!r}", column, odd, "true or false, 0 or 1")
        values = np.isin(words, ("true", "1"))[values]
    gap = missing_in(column)
    if gap is not None:
        if (lost := np.flatnonzero(gap & ~closing)).size:
            raise InputError(f"{table.row(int(lost[0]))}: column {name!r} is missing")
        values = np.where(gap, 0, values)
    wrong = np.flatnonzero((values != 0) & (values != 1))
    if wrong.size:
        raise InputError(f"{table.row(int(wrong[0]))}: column {name!r} is {values[wrong[0]]:g}, not 0 or 1")
    return values != 0


def _identities(table: Table, name: str) -> Column:
    column = table.read(name)
    gap = missing_in(column)
    if gap is not None:
        raise InputError(f"{table.row(int(np.flatnonzero(gap)[0]))}: episode column {name!r} is missing")
    if column.values.dtype.kind == "f" and (large := np.flatnonzero(np.abs(column.values) >= EXACT)).size:
        raise InputError(
            f"{table.row(int(large[0]))}: episode column {name!r} holds numbers beyond 2^53, which cannot be "
            "told apart: write them as words, for example with a letter in front"
        )
    return column


def _starts(
    table: Table,
    ids: Column | None,
    closing: Bool[np.ndarray, " rows"],
    ended: Bool[np.ndarray, " rows"],
) -> Int[np.ndarray, " n"]:
    """The first row of every episode: where its id changes, or without ids after each end."""
    if ids is None:
        # An observation-only row after the end still belongs to the episode.
        ends = (ended[:-1] & ~closing[1:]) | closing[:-1]
        return np.concatenate([[0], np.flatnonzero(ends) + 1])
    starts = np.concatenate([[0], np.flatnonzero(ids.values[1:] != ids.values[:-1]) + 1])
    order = np.argsort(ids.values[starts], kind="stable")
    again = ids.values[starts][order][1:] == ids.values[starts][order][:-1]
    if again.any():
        row = int(starts[order[1:][again].min()])
        raise InputError(
            f"{table.row(row)}: episode {ids.shown(row)} goes on here after other episodes; its rows must "
            f"stand together ({MEND})"
        )
    return starts


def _with_next(
    table: Table, name: str, after: str, starts: Int[np.ndarray, " n"], ends: Int[np.ndarray, " n"]
) -> Column:
    """The observations before every step and after the last one, which must chain from row to row."""
    here, there = table.load(name), table.load(after)
    if here.categories != there.categories and (here.categories is None or there.categories is None):
        raise InputError(f"{table.row(0)}: {name!r} and {after!r} are not of one kind")
    words: tuple[Any, ...] | None = None
    before, behind = here.values, there.values
    if here.categories is not None and there.categories is not None:
        words = tuple(sorted({*here.categories, *there.categories}, key=str))
        before, behind = (
            np.array([words.index(word) for word in column.categories or ()], np.int64)[column.values]
            for column in (here, there)
        )
    chained = before[1:] == behind[:-1]
    chained |= (before[1:] != before[1:]) | (behind[:-1] != behind[:-1])  # missing ones are refused later
    chained[starts[1:] - 1] = True
    if not chained.all():
        row = int(np.flatnonzero(~chained)[0])
        raise InputError(
            f"{table.row(row)}: {after!r} is {there.shown(row)}, but the next row's {name!r} is "
            f"{here.shown(row + 1)}"
        )
    return Column(_framed(before, behind, ends), words, _framed_missing(here, there, ends))


def _framed(
    before: Shaped[np.ndarray, " rows"], behind: Shaped[np.ndarray, " rows"], ends: Int[np.ndarray, " n"]
) -> Shaped[np.ndarray, " frames"]:
    return np.insert(before, ends + 1, behind[ends])


def _framed_missing(here: Column, there: Column, ends: Int[np.ndarray, " n"]) -> Any:
    if here.missing is None and there.missing is None:
        return None
    masks = [np.zeros(len(c.values), bool) if c.missing is None else c.missing for c in (here, there)]
    return _framed(masks[0], masks[1], ends)
