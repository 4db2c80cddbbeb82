"""CSV and Parquet files, through Arrow."""

import abc
import json
import os
import tempfile
import weakref
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from aetdice.data.columns import Columns, label, numbered
from aetdice.data.episodes import Episodes
from aetdice.data.readers.arrow import Table, arrow_column, column_from, first_line, pyarrow, table_from
from aetdice.data.readers.base import Column, Format, Recording
from aetdice.data.readers.lines import line_of_odd_record, line_of_row, separator
from aetdice.data.readers.tables import recording_of
from aetdice.errors import InputError
from aetdice.files import write_whole

MISSING = ["", "nan", "NaN", "NAN", "null", "NULL", "n/a", "N/A", "NA", "#N/A", "None"]
SPOOLED_BYTES = 1 << 28
"""CSV files above this size go through a temporary file: their numbers need not fit into memory twice."""
BLOCK_BYTES = 1 << 24
KEPT = b"aetdice"
"""Under this key a Parquet file keeps how its episodes end."""


class TableFile(Format):
    """A file with a row per step."""

    @abc.abstractmethod
    def table(self, path: Path) -> Table:
        """Its columns, read when they are needed."""

    @abc.abstractmethod
    def arrow(self, path: Path) -> Any:
        """All of it as an Arrow table."""

    def read(self, path: Path, columns: Columns) -> Recording:
        return recording_of(self.table(path), columns)


class Csv(TableFile):
    """Comma-separated values; semicolons and tabs are known by the first line."""

    name = "csv"
    words = "comma-separated values with a header"

    def recognises(self, path: Path) -> bool:
        return path.is_file() and path.suffix.lower() in (".csv", ".tsv", ".txt")

    def table(self, path: Path) -> Table:
        if path.stat().st_size > SPOOLED_BYTES and (spooled := self._spooled(path)) is not None:
            return spooled
        return table_from(self.arrow(path), str(path))._replace(line=partial(line_of_row, path))

    def arrow(self, path: Path) -> Any:
        pa = pyarrow()
        from pyarrow import csv

        options = _options(csv, path)
        try:
            try:
                # Block by block takes a third of the memory, but fixes types by the first block.
                with csv.open_csv(path, **options) as blocks:
                    return blocks.read_all()
            except pa.ArrowInvalid:
                return csv.read_csv(path, **_options(csv, path, newlines_in_values=True))
        except pa.ArrowException as error:
            line = line_of_odd_record(path)
            place = f"{path}" if line is None else f"{path}, line {line}"
            raise InputError(f"{place}: not a table: {first_line(error)}") from error

    def _spooled(self, path: Path) -> Table | None:
        """Block by block to a temporary Parquet file, whose columns are read one at a time.

        None where a block does not have the types of the first: then all of it must be looked at.
        """
        pa = pyarrow()
        from pyarrow import csv, parquet

        options = _options(csv, path)
        handle, name = tempfile.mkstemp(suffix=".parquet")
        os.close(handle)
        spool = Path(name)
        weakref.finalize(load := _Columns(spool, str(path)), spool.unlink, missing_ok=True)
        read = csv.ReadOptions(block_size=BLOCK_BYTES)
        try:
            with (
                csv.open_csv(path, read_options=read, **options) as blocks,
                parquet.ParquetWriter(spool, blocks.schema, use_dictionary=False, compression="none") as file,
            ):
                for block in blocks:
                    file.write_batch(block)
        except pa.ArrowInvalid:
            return None
        rows = parquet.read_metadata(spool).num_rows
        return Table(str(path), tuple(blocks.schema.names), rows, load, line=partial(line_of_row, path))

    def write(self, path: Path, episodes: Episodes) -> None:
        arrow = arrow_table(episodes)
        write_whole(path, lambda partial: write_arrow(arrow, partial, ".csv"))


def _options(csv: Any, path: Path, **parse: Any) -> dict[str, Any]:
    """How Arrow is to parse and convert columns."""
    convert = csv.ConvertOptions(null_values=MISSING, strings_can_be_null=True)
    parsing = csv.ParseOptions(delimiter=separator(path), **parse)
    return {"parse_options": parsing, "convert_options": convert}


class _Columns:
    """Columns of a Parquet file by name, read when they are asked for."""

    def __init__(self, path: Path, source: str) -> None:
        self.path, self.source = path, source

    def __call__(self, name: str) -> Column:
        pa = pyarrow()
        from pyarrow import parquet

        try:
            return column_from(parquet.read_table(self.path, columns=[name]).column(0), name, self.source)
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{self.source}: column {name!r} cannot be read: {first_line(error)}") from error
        finally:
            pa.default_memory_pool().release_unused()


class Parquet(TableFile):
    """Parquet, read one column at a time."""

    name = "parquet"
    words = "an Arrow table on disk"

    def recognises(self, path: Path) -> bool:
        return path.is_file() and path.suffix.lower() in (".parquet", ".pq")

    def table(self, path: Path) -> Table:
        pa = pyarrow()
        from pyarrow import parquet

        try:
            facts, schema = parquet.read_metadata(path), parquet.read_schema(path)
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{path} is not a Parquet file: {first_line(error)}") from error
        return Table(
            str(path), tuple(schema.names), facts.num_rows, _Columns(path, str(path)), ends=_kept_ends(schema)
        )

    def arrow(self, path: Path) -> Any:
        pa = pyarrow()
        from pyarrow import parquet

        try:
            return parquet.read_table(path)
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{path} is not a Parquet file: {first_line(error)}") from error

    def write(self, path: Path, episodes: Episodes) -> None:
        arrow = arrow_table(episodes)
        arrow = arrow.replace_schema_metadata({KEPT: json.dumps({"ends": episodes.ends})})
        write_whole(path, lambda partial: write_arrow(arrow, partial, ".parquet"))


def write_arrow(arrow: Any, path: Path, suffix: str) -> None:
    """A table as CSV or Parquet, by the suffix."""
    if suffix.lower() in (".parquet", ".pq"):
        from pyarrow import parquet

        parquet.write_table(arrow, path)
    elif suffix.lower() == ".csv":
        from pyarrow import csv

        csv.write_csv(arrow, path)
    else:
        raise InputError(f"tables are written as .csv or .parquet, not {suffix or 'without a suffix'}")


def _kept_ends(schema: Any) -> str | None:
    try:
        return dict(json.loads((schema.metadata or {}).get(KEPT, b"{}"))).get("ends")
    except (TypeError, ValueError):
        return None


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
