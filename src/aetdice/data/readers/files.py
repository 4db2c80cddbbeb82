"""Files with a row per step, through Arrow: CSV, Parquet, Arrow IPC."""

import abc
import os
import tempfile
import weakref
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from aetdice.data.columns import Columns
from aetdice.data.episodes import Episodes
from aetdice.data.readers.arrow import Table, pyarrow, table_from
from aetdice.data.readers.base import Format, Recording
from aetdice.data.readers.columnar import ArrowFiles, Columnar, ParquetFiles, keeping_ends
from aetdice.data.readers.spool import place_of_line, read_csv, spool_csv
from aetdice.data.readers.stack import Part, Stack
from aetdice.data.readers.tables import recording_of
from aetdice.data.readers.written import ARROW, PARQUET, arrow_table, write_arrow
from aetdice.files import write_whole

SPOOLED_BYTES = 1 << 28
"""CSV files above this size go through a temporary file: their numbers need not fit into memory twice."""


class TableFile(Format):
    """A file with a row per step; several of them are a table in parts."""

    @abc.abstractmethod
    def stack(self, parts: Sequence[Part], source: str) -> Stack:
        """The rows of all parts, of which no more is in memory than is asked for."""

    def table(self, parts: Sequence[Part], source: str) -> Table:
        """The columns of all parts, read when they are needed."""
        return self.stack(parts, source).table()

    def arrow(self, parts: Sequence[Part], source: str) -> Any:
        """All parts as one Arrow table."""
        stack = self.stack(parts, source)
        return pyarrow().table([stack.column(name) for name in stack.names], names=list(stack.names))

    def read(self, path: Path, columns: Columns) -> Recording:
        return recording_of(self.table([Part(path, str(path))], str(path)), columns)


class Csv(TableFile):
    """Comma-separated values; semicolons and tabs are known by the first line."""

    name = "csv"
    words = "comma-separated values with a header"
    suffixes = (".csv", ".tsv", ".txt")

    def stack(self, parts: Sequence[Part], source: str) -> Stack:
        """Parsed block by block into a temporary Parquet file."""
        handle, name = tempfile.mkstemp(suffix=".parquet")
        os.close(handle)
        spool = Path(name)
        try:
            place = partial(place_of_line, parts, spool_csv(parts, spool))
            found = Stack(ParquetFiles(), [Part(spool, source)], source, place)
        except BaseException:
            spool.unlink()
            raise
        weakref.finalize(found, spool.unlink, missing_ok=True)
        return found

    def table(self, parts: Sequence[Part], source: str) -> Table:
        if len(parts) > 1 or parts[0].path.stat().st_size > SPOOLED_BYTES:
            return super().table(parts, source)
        arrow = read_csv(parts[0].path)
        return table_from(arrow, source)._replace(place=partial(place_of_line, parts, [0]))

    def arrow(self, parts: Sequence[Part], source: str) -> Any:
        return read_csv(parts[0].path) if len(parts) == 1 else super().arrow(parts, source)

    def write(self, path: Path, episodes: Episodes) -> None:
        arrow = arrow_table(episodes)
        write_whole(path, lambda partial: write_arrow(arrow, partial, ".csv"))


class _ColumnarFile(TableFile):
    """A file of Arrow columns, read one at a time."""

    kind: ClassVar[Columnar]

    def stack(self, parts: Sequence[Part], source: str) -> Stack:
        return Stack(self.kind, parts, source)

    def write(self, path: Path, episodes: Episodes) -> None:
        arrow = keeping_ends(arrow_table(episodes), episodes.ends)
        write_whole(path, lambda partial: write_arrow(arrow, partial, self.suffixes[0]))


class Parquet(_ColumnarFile):
    name = "parquet"
    words = "an Arrow table on disk"
    kind = ParquetFiles()
    suffixes = PARQUET


class Arrow(_ColumnarFile):
    name = "arrow"
    words = "Arrow IPC, a file or a stream; Feather"
    kind = ArrowFiles()
    suffixes = ARROW
