"""Rows of a table: what is missing, out of order, repeated, or belongs to two episodes at once."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from aetdice.data.columns import Columns
from aetdice.data.doctor.findings import Finding
from aetdice.data.readers.arrow import Table, leaving
from aetdice.data.readers.checks import missing_in
from aetdice.errors import InputError


class Order(NamedTuple):
    """How the rows of a table should stand."""

    rows: Int[np.ndarray, " rows"]
    """The rows by episode (as they first appear) and step."""
    episode: Int[np.ndarray, " rows"]
    """The number of every row's episode, in file order; episodes that share an id are told apart."""
    step: Float[np.ndarray, " rows"]
    shared: Int[np.ndarray, " rows"]
    """How many episodes began under the row's id before its own."""
    same: Bool[np.ndarray, " rows"]
    """Of `rows`: whether episode and step are those of the row before."""


def order_of(table: Table, columns: Columns) -> Order | None:
    """Rows by episode and step; None where nothing says what the step is."""
    if columns.episode is None or columns.step is None:
        return None
    steps, names = table.load(columns.step), table.read(columns.episode)
    if steps.categories is not None or any(missing_in(each) is not None for each in (steps, names)):
        return None
    step, ids = steps.values.astype(np.float64), names.values
    blocks = np.concatenate([[0], np.flatnonzero(ids[1:] != ids[:-1]) + 1])
    together = len(np.unique(ids[blocks])) == len(blocks)
    if together:
        codes = np.repeat(np.arange(len(blocks)), np.diff(blocks, append=len(ids)))
        if np.all((np.diff(step) == 1) | (np.diff(codes) == 1)):
            rows, none = np.arange(len(ids)), np.zeros(len(ids), bool)
            return Order(rows, codes, step, np.zeros(len(ids), np.int64), none)  # as it should be
    else:
        _, first, codes = np.unique(ids, return_index=True, return_inverse=True)
        codes = np.argsort(np.argsort(first))[codes.reshape(-1)]
    # A step that starts over is another episode with the same id, unless it just repeats the row before.
    lowest = np.full(codes.max() + 1, np.inf)
    np.minimum.at(lowest, codes, step)
    begins = step == lowest[codes]
    grouped = np.argsort(codes, kind="stable")
    again = np.concatenate([[False], (np.diff(step[grouped]) == 0) & (np.diff(codes[grouped]) == 0)])
    starts = begins[grouped] & ~again
    number = np.cumsum(starts)
    edge = np.concatenate([[True], np.diff(codes[grouped]) != 0])
    base = np.maximum.accumulate(np.where(edge, number, 0))
    shared = np.empty(len(codes), np.int64)
    shared[grouped] = np.maximum(number - base, 0)
    episode = (
        codes if not shared.any() else np.unique(codes * (shared.max() + 1) + shared, return_inverse=True)[1]
    )
    rows = np.lexsort((step, episode))
    same = np.concatenate([[False], (np.diff(episode[rows]) == 0) & (np.diff(step[rows]) == 0)])
    return Order(rows, episode.reshape(-1), step, shared, same)


def row_findings(table: Table, columns: Columns) -> list[Finding]:
    """Everything about rows that a reader would refuse, all of it at once."""
    order = order_of(table, columns)
    found = [] if order is None else _order(table, columns, order)
    return [*_gaps(table, columns), *found, *_early_ends(table, columns, order)]


def _gaps(table: Table, columns: Columns) -> list[Finding]:
    """Missing and infinite values, but for the row after an episode's last step."""
    found = []
    steps = [*columns.rewards, *columns.actions]
    closing: Bool[np.ndarray, " rows"] | None = None
    for name in steps:
        gap = missing_in(table.load(name))
        closing = None if gap is None else gap if closing is None or name == steps[0] else closing & gap
        if closing is None:
            break
    flags = [name for name in (columns.episode, columns.step, columns.terminated, columns.truncated) if name]
    for name in (*steps, *columns.observations, *columns.next_observations, *flags):
        try:
            column = table.read(name) if name == columns.episode else table.load(name)
        except InputError as error:
            found.append(Finding("column", "error", name, str(error)))
            continue
        gap = missing_in(column)
        if (
            gap is not None
            and closing is not None
            and name in (*steps, columns.terminated, columns.truncated)
        ):
            gap = gap & ~closing
        if gap is not None and gap.any():
            row, count = int(np.flatnonzero(gap)[0]), int(gap.sum())
            words = f"column {name!r}: {count:,} values are missing"
            words += f"; fill them in, or {leaving(name)}" if name in columns.observations else ""
            found.append(_at(table, columns, row, "missing", words, count))
        if column.values.dtype.kind == "f":
            infinite = np.isinf(column.values)
            if infinite.any():
                row, count = int(np.flatnonzero(infinite)[0]), int(infinite.sum())
                words = f"column {name!r}: {count:,} values are infinite"
                found.append(_at(table, columns, row, "infinite", words, count))
    return found


def _order(table: Table, columns: Columns, order: Order) -> list[Finding]:
    found = []
    if order.shared.any():
        row, count = int(np.flatnonzero(order.shared)[0]), len(np.unique(order.episode[order.shared > 0]))
        words = f"{count:,} episodes share the id of an earlier one: their steps start over (--fix mends it)"
        found.append(_at(table, columns, row, "shared id", words, count))
    back = np.diff(order.rows) != 1
    if back.any():
        row, count = int(order.rows[1:][back].min()), int(back.sum())
        words = f"rows are out of order at {count:,} places (--fix sorts them)"
        found.append(_at(table, columns, row, "order", words, count))
    if order.same.any():
        row, count = int(order.rows[order.same][0]), int(order.same.sum())
        words = (
            f"{count:,} steps are repeated (--fix leaves out those that repeat the row before to the letter)"
        )
        found.append(_at(table, columns, row, "repeated step", words, count))
    step, episode = order.step[order.rows], order.episode[order.rows]
    gaps = (np.diff(step) > 1) & (np.diff(episode) == 0)
    if gaps.any():
        row, count = int(order.rows[1:][gaps][0]), int(gaps.sum())
        words = (
            f"steps are missing before {count:,} rows (here {step[:-1][gaps][0]:g} to {step[1:][gaps][0]:g})"
        )
        found.append(_at(table, columns, row, "missing step", words, count))
    return found


def _early_ends(table: Table, columns: Columns, order: Order | None) -> list[Finding]:
    """Flags in mid-episode."""
    found = []
    if columns.episode is None:
        return []
    ids = table.read(columns.episode).values if order is None else order.episode[order.rows]
    inner = ids[1:] == ids[:-1]
    acted = missing_in(table.load(columns.rewards[0]))
    for role in ("terminated", "truncated"):
        name = getattr(columns, role)
        if name is None or table.load(name).categories is not None:
            continue
        flags = table.load(name).values != 0
        gone = missing_in(table.load(name))
        flags = flags if gone is None else flags & ~gone
        acting = np.ones(table.rows, bool) if acted is None else ~acted
        if order is not None:
            flags, acting = flags[order.rows], acting[order.rows]
        early = flags[:-1] & inner & acting[1:]
        if early.any():
            place = int(np.flatnonzero(early)[0])
            row = place if order is None else int(order.rows[place])
            words = f"{int(early.sum()):,} rows are {role}, but their episode goes on"
            found.append(_at(table, columns, row, f"{role} early", words, int(early.sum())))
    return found


def _at(table: Table, columns: Columns, row: int, kind: str, words: str, count: int) -> Finding:
    where = table.row(row)
    known = [
        f"{role} {table.read(name).shown(row)}"
        for role, name in (("episode", columns.episode), ("step", columns.step))
        if name
    ]
    return Finding(kind, "error", f"{where} ({', '.join(known)})" if known else where, words, count)
