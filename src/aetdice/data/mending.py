"""Mending a table: only what changes no value. Rows in order, repeats once, an id for every episode."""

from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from aetdice.data.columns import Columns
from aetdice.data.doctor.rows import order_of
from aetdice.data.readers import TableFile, locate
from aetdice.data.readers.arrow import pyarrow, table_from
from aetdice.data.readers.written import ARROW, PARQUET, write_arrow
from aetdice.errors import InputError
from aetdice.files import write_whole

WRITTEN = (".csv", *PARQUET, *ARROW)


def mend(source: str | Path, columns: Columns, target: Path) -> list[str]:
    """Write the mended table to a new file; says what was mended, nothing is written if nothing was."""
    if target.exists():
        raise InputError(f"{target} exists; delete it or choose another name")
    if target.suffix.lower() not in WRITTEN:
        raise InputError(f"{target}: tables are written as {', '.join(WRITTEN)}")
    place = locate(source)
    if not isinstance(place.format, TableFile):
        raise InputError(
            f"{place.name}: only tables (CSV, Parquet, Arrow) are mended; the arrays of a "
            f"{place.format.name} are in order"
        )
    with place.named():
        arrow = place.format.arrow(place.parts, place.name)
    table = table_from(arrow, place.name)
    try:
        columns = columns.guessed(table.names)
    except InputError as error:
        raise InputError(f"{place.name}: {error}") from error
    order = order_of(table, columns)
    if order is None or columns.episode is None:
        raise InputError(
            f"{place.name}: without whole episode and step columns nothing tells the right order"
        )
    done: list[str] = []
    if order.shared.any():
        count = len(np.unique(order.episode[order.shared > 0]))
        done.append(f"{count:,} episodes that shared an id have one of their own")
        arrow = _told_apart(arrow, columns.episode, order.shared)
    rows = order.rows
    if np.any(np.diff(rows) != 1):
        done.append("rows are in order")
        arrow = arrow.take(rows)
    repeats = _repeats(arrow, np.flatnonzero(order.same))
    if repeats.size:
        done.append(f"{repeats.size:,} repeated rows are left out")
        keep = np.ones(arrow.num_rows, bool)
        keep[repeats] = False
        arrow = arrow.filter(pyarrow().array(keep))
    if done:
        write_whole(target, lambda partial: write_arrow(arrow, partial, target.suffix))
    return done


def _told_apart(arrow: Any, name: str, shared: Int[np.ndarray, " rows"]) -> Any:
    pa = pyarrow()
    ids = arrow.column(name).combine_chunks().cast(pa.string())
    known, mark = set(ids.to_pylist()), "#"
    while any(mark in str(name) for name in known):
        mark += "#"
    words = pa.array(np.where(shared > 0, [f"{mark}{number + 1}" for number in shared], ""))
    joined = pa.compute.binary_join_element_wise(ids, words.cast(pa.string()), "")
    return arrow.set_column(arrow.column_names.index(name), name, joined)


def _repeats(arrow: Any, candidates: Int[np.ndarray, " k"]) -> Int[np.ndarray, " r"]:
    """Of the rows that repeat a step, those that repeat the whole row before them."""
    if not candidates.size:
        return candidates
    equal: Bool[np.ndarray, " k"] = np.ones(len(candidates), bool)
    here, before = arrow.take(candidates), arrow.take(candidates - 1)
    for one, other in zip(here.columns, before.columns, strict=True):
        pairs = zip(one.to_pylist(), other.to_pylist(), strict=True)
        alike = [a == b or (a != a and b != b) or (a is None and b is None) for a, b in pairs]
        equal &= np.array(alike)
    return candidates[equal]
