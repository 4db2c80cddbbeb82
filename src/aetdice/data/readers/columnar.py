"""Files that hold Arrow columns, Parquet and Arrow IPC: a column at a time, or a block of rows at a time."""

import abc
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aetdice.data.readers.arrow import first_line, pyarrow
from aetdice.errors import InputError

BLOCK_ROWS = 1 << 16
BUFFER = 1 << 20
"""Of a column of Parquet, where rows are read a block at a time: row groups may be larger than the memory."""
MAPPED_BYTES = 1 << 28
"""Arrow files whose batches are larger than this are mapped; smaller batches are read."""
KEPT = b"aetdice"
"""Under this key the schema of a file keeps how its episodes end."""


class Columnar(abc.ABC):
    """How a kind of file is read; every method raises `InputError` where a file is not one."""

    @abc.abstractmethod
    def schema(self, path: Path) -> Any:
        """Names and types of the columns."""

    @abc.abstractmethod
    def count(self, path: Path) -> int:
        """The number of rows."""

    @abc.abstractmethod
    def column(self, path: Path, name: str) -> Any:
        """A whole column."""

    @abc.abstractmethod
    def blocks(self, path: Path, names: Sequence[str]) -> Iterator[Any]:
        """Some columns of all rows in order, as tables of at most `BLOCK_ROWS`."""


class ParquetFiles(Columnar):
    def schema(self, path: Path) -> Any:
        from pyarrow import parquet

        with _being(path, "a Parquet file"):
            return parquet.read_schema(path)

    def count(self, path: Path) -> int:
        from pyarrow import parquet

        with _being(path, "a Parquet file"):
            return int(parquet.read_metadata(path).num_rows)

    def column(self, path: Path, name: str) -> Any:
        from pyarrow import parquet

        with _being(path, "a Parquet file"):
            return parquet.read_table(path, columns=[name]).column(0)

    def blocks(self, path: Path, names: Sequence[str]) -> Iterator[Any]:
        pa = pyarrow()
        from pyarrow import parquet

        with (
            _being(path, "a Parquet file"),
            parquet.ParquetFile(path, buffer_size=BUFFER, pre_buffer=False) as file,
        ):
            for batch in file.iter_batches(BLOCK_ROWS, columns=list(names)):
                yield pa.Table.from_batches([batch]).select(list(names))


class ArrowFiles(Columnar):
    """IPC files and streams, Feather among them; compressed or not."""

    def schema(self, path: Path) -> Any:
        with self._batches(path, None) as (schema, _):
            return schema

    def count(self, path: Path) -> int:
        with self._batches(path, []) as (_, batches):
            return sum(batch.num_rows for batch in batches)

    def column(self, path: Path, name: str) -> Any:
        pa = pyarrow()
        with self._batches(path, [name]) as (schema, batches):
            return pa.chunked_array([batch.column(0) for batch in batches], schema.field(name).type)

    def blocks(self, path: Path, names: Sequence[str]) -> Iterator[Any]:
        pa = pyarrow()
        with self._batches(path, names) as (_, batches):
            for batch in batches:
                for first in range(0, batch.num_rows, BLOCK_ROWS):
                    part = batch.slice(first, BLOCK_ROWS)
                    yield pa.Table.from_batches([part]).select(list(names))

    @contextmanager
    def _batches(self, path: Path, names: Sequence[str] | None) -> Iterator[tuple[Any, Iterator[Any]]]:
        """The schema of the file, and its batches with some of their columns."""
        pa = pyarrow()
        from pyarrow import ipc

        with _being(path, "an Arrow IPC file"), pa.OSFile(str(path)) as file:
            begin = file.read(6)
            file.seek(0)
            if begin == b"ARROW1":
                found = ipc.open_file(file)
                many, schema = found.num_record_batches, found.schema
                source = (
                    file if path.stat().st_size <= MAPPED_BYTES * max(1, many) else pa.memory_map(str(path))
                )
                chosen = ipc.open_file(source, options=_only(schema, names))
                yield schema, map(chosen.get_batch, range(many))
            else:
                schema = ipc.open_stream(file).schema
                file.seek(0)
                yield schema, iter(ipc.open_stream(file, options=_only(schema, names)))


def _only(schema: Any, names: Sequence[str] | None) -> Any:
    """Options that read some columns; a batch without any would not know how many rows it has."""
    from pyarrow import ipc

    fields = [0] if names is not None and not names else [schema.get_field_index(n) for n in names or ()]
    return ipc.IpcReadOptions(included_fields=fields)


@contextmanager
def _being(path: Path, what: str) -> Iterator[None]:
    pa = pyarrow()
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} is not {what}: {first_line(error)}") from error
    finally:
        pa.default_memory_pool().release_unused()


def kept_ends(schema: Any) -> str | None:
    """What a file says of truncated ends, if it was written here."""
    try:
        return dict(json.loads((schema.metadata or {}).get(KEPT, b"{}"))).get("ends")
    except (TypeError, ValueError):
        return None


def keeping_ends(arrow: Any, ends: str) -> Any:
    """The table with what `kept_ends` finds in it."""
    return arrow.replace_schema_metadata({KEPT: json.dumps({"ends": ends})})
