"""Episodes as tables for writing: the words instead of the numbers."""

from pathlib import Path
from typing import Any

import numpy as np

from aetdice.data.columns import label, numbered
from aetdice.data.episodes import Episodes
from aetdice.data.readers.arrow import arrow_column, pyarrow
from aetdice.errors import InputError

ARROW = (".arrow", ".feather", ".ipc")
PARQUET = (".parquet", ".pq")


def write_arrow(arrow: Any, path: Path, suffix: str) -> None:
    """A table as CSV, Parquet or Arrow IPC, by the suffix."""
    if suffix.lower() in PARQUET:
        from pyarrow import parquet

        parquet.write_table(arrow, path)
    elif suffix.lower() in ARROW:
        from pyarrow import feather

        feather.write_feather(arrow, str(path), compression="uncompressed")
    elif suffix.lower() == ".csv":
        from pyarrow import csv

        csv.write_csv(arrow, path)
    else:
        raise InputError(
            f"tables are written as .csv, .parquet or .arrow, not {suffix or 'without a suffix'}"
        )


def arrow_table(episodes: Episodes) -> Any:
    """A row per step and one for the observation after the last: the words instead of the numbers."""
    pa = pyarrow()
    counts = episodes.lengths + 1
    firsts = np.cumsum(counts) - counts
    total = int(counts.sum())
    step = np.arange(total) - np.repeat(firsts, counts)
    closing = np.zeros(total, bool)
    closing[firsts + episodes.lengths] = True
    columns: dict[str, Any] = {
        "episode": pa.array(np.repeat(np.arange(len(episodes)), counts)),
        "step": pa.array(step),
    }
    columns |= _observation_columns(episodes)
    rows = np.flatnonzero(~closing)
    names, values = _action_columns(episodes)
    for name, (column, words) in zip(names, values, strict=True):
        columns[name] = arrow_column(_spread(column, rows, total), words, closing)
    for index, name in enumerate(episodes.objectives):
        columns[label("rewards", name)] = arrow_column(
            _spread(episodes.rewards[:, index], rows, total), None, closing
        )
    for name in ("terminated", "truncated"):
        flags = np.zeros(total, bool)
        flags[firsts + episodes.lengths - 1] = getattr(episodes, name)
        columns[name] = pa.array(flags, mask=closing)
    return pa.table(columns)


def _spread(values: Any, rows: Any, total: int) -> Any:
    spread = np.zeros(total, values.dtype)
    spread[rows] = values
    return spread


def _observation_columns(episodes: Episodes) -> dict[str, Any]:
    frames, coding = episodes.observations.reshape(len(episodes.observations), -1), episodes.coding
    if coding is None:
        return {f"obs_{index}": arrow_column(column, None, None) for index, column in enumerate(frames.T)}
    columns, start = {}, 0
    for entry in coding.observations:
        width = len(entry.values) if entry.values is not None and coding.indicators else 1
        part = frames[:, start : start + width]
        codes = part.argmax(axis=1) if entry.values is not None and coding.indicators else part[:, 0]
        columns[label("observations", entry.name)] = arrow_column(codes, entry.values, None)
        start += width
    return columns


def _action_columns(episodes: Episodes) -> tuple[list[str], list[tuple[Any, Any]]]:
    coding = episodes.coding
    flat = episodes.actions.reshape(episodes.steps, -1)
    names = numbered("actions", flat.shape[1]) if coding is None else coding.action_names
    labels = [label("actions", name) for name in names]
    if coding is None or coding.actions is None:
        return labels, [(column, None) for column in flat.T]
    values: list[tuple[Any, Any]] = []
    for index in range(len(names)):
        words = [entry[index] for entry in coding.actions]
        if all(isinstance(word, str) for word in words):
            values.append((episodes.actions, tuple(words)))
        else:
            values.append((np.array(words)[episodes.actions], None))
    return labels, values
