"""A table in parts: files of one kind with the same columns, one below the other."""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from aetdice.data.readers.arrow import Table, column_from, first_line, pyarrow
from aetdice.data.readers.columnar import Columnar, kept_ends
from aetdice.errors import InputError


class Part(NamedTuple):
    """One file of a table."""

    path: Path
    """Where it can be read."""
    name: str
    """What it is called in messages: the path, or the URL that it was copied from."""


class Stack:
    """The rows of all parts, as one table whose columns or blocks are read when they are needed."""

    def __init__(
        self,
        kind: Columnar,
        parts: Sequence[Part],
        source: str,
        place: Callable[[int], str] | None = None,
    ) -> None:
        self.kind, self.parts, self.source = kind, parts, source
        self.marks = {part: mark_of(part.path) for part in parts}
        self.schemas = [kind.schema(part.path) for part in parts]
        self.names = names_of(self.schemas[0], parts[0].name)
        for part, schema in zip(parts[1:], self.schemas[1:], strict=True):
            check_alike(self.names, names_of(schema, part.name), parts[0].name, part.name)
        self.place = place or self._row
        ends = {kept_ends(schema) for schema in self.schemas}
        self.ends = ends.pop() if len(ends) == 1 else None

    @cached_property
    def firsts(self) -> list[int]:
        """The number of every part's first row, and of all rows."""
        return [0, *np.cumsum([self.kind.count(part.path) for part in self.parts]).tolist()]

    @property
    def rows(self) -> int:
        return self.firsts[-1]

    def table(self) -> Table:
        """One column in memory at a time."""
        return Table(
            self.source,
            self.names,
            self.rows,
            lambda name: column_from(self.column(name), name, self.source),
            self.place,
            ends=self.ends,
        )

    def column(self, name: str) -> Any:
        pa = pyarrow()
        found = [self.kind.column(part.path, name) for part in self.parts]
        self._check_unchanged(self.parts)
        if len(found) == 1:
            return found[0]
        kind = self.type_of(name)
        chunks = [chunk for each in found for chunk in converted(each, kind).chunks]
        return pa.chunked_array(chunks, kind)

    def blocks(self, names: Sequence[str]) -> Iterator[Any]:
        """Arrow tables of some columns, all rows in order."""
        pa = pyarrow()
        kinds = [self.type_of(name) for name in names]
        for part in self.parts:
            self._check_unchanged([part])
            for block in self.kind.blocks(part.path, names):
                columns = map(converted, block.columns, kinds)
                yield pa.table(list(columns), names=list(names))
        self._check_unchanged(self.parts)

    def type_of(self, name: str) -> Any:
        """The one type that a column has in all parts, words as words."""
        pa = pyarrow()
        kinds = [_plain(schema.field(name).type) for schema in self.schemas]
        found = pa.schema([(name, kinds[0])])
        for part, kind in zip(self.parts, kinds, strict=True):
            try:
                found = pa.unify_schemas([found, pa.schema([(name, kind)])], promote_options="permissive")
            except pa.ArrowException as error:
                raise InputError(
                    f"{part.name}: column {name!r} is of type {kind}, but {found.field(0).type} in "
                    f"{self.parts[0].name}: write it alike in all parts"
                ) from error
        return found.field(0).type

    def _check_unchanged(self, parts: Sequence[Part]) -> None:
        """`InputError` where a file is no longer the one that was there first."""
        for part in parts:
            if mark_of(part.path) != self.marks[part]:
                raise InputError(f"{part.name} has changed while it was read; try again when it is whole")

    def _row(self, row: int) -> str:
        part = int(np.searchsorted(self.firsts, row, side="right")) - 1
        return f"{self.parts[part].name}, row {row - self.firsts[part]}"


def mark_of(path: Path) -> list[int]:
    """What changes with a file; the last of it also where size and time are set to what they were."""
    try:
        fact = os.stat(path)
    except FileNotFoundError as error:
        raise InputError(f"there is no file {path}, or it is a link that leads nowhere") from error
    return [fact.st_ino, fact.st_size, fact.st_mtime_ns, fact.st_ctime_ns]


def names_of(schema: Any, source: str) -> tuple[str, ...]:
    """The names of columns."""
    try:
        return tuple(schema.names)
    except UnicodeDecodeError as error:
        raise InputError(f"{source}: the names of its columns are not UTF-8; save it as UTF-8") from error


def check_alike(names: Sequence[str], others: Sequence[str], one: str, other: str) -> None:
    """`InputError` unless two parts have the same columns, in whatever order."""
    if sorted(names) != sorted(others):
        odd = sorted({*names} ^ {*others}) or ["one of them twice"]
        raise InputError(f"{other} has not the columns of {one}: they differ in {', '.join(odd)}")


def converted(chunks: Any, kind: Any) -> Any:
    """A column in the type that it has in all parts."""
    pa = pyarrow()
    try:
        if pa.types.is_dictionary(chunks.type):
            chunks = chunks.cast(chunks.type.value_type)
        return chunks.cast(kind, safe=False)
    except pa.ArrowException as error:
        raise InputError(f"a column of type {chunks.type} is no {kind}: {first_line(error)}") from error


def _plain(kind: Any) -> Any:
    """Words are words, however they are stored."""
    pa = pyarrow()
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    words = pa.types.is_string(kind) or pa.types.is_string_view(kind)
    return pa.large_string() if words else kind
