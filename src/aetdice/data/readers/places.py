"""Where data are: one file or folder, a table in parts, here or at a URL."""

import glob
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from aetdice.data.columns import Columns
from aetdice.data.readers.arrays import Archive
from aetdice.data.readers.arrow import Table
from aetdice.data.readers.base import Format, Recording, Saved
from aetdice.data.readers.files import TableFile
from aetdice.data.readers.formats import COMPRESSED, FORMATS, format_named, format_of
from aetdice.data.readers.stack import Part, Stack, mark_of
from aetdice.data.readers.tables import recording_of
from aetdice.data.remote import Remote
from aetdice.data.store import MANIFEST
from aetdice.data.urls import is_url, local_path, suffix_of
from aetdice.errors import InputError

IN_FOLDERS = (".csv", ".tsv", ".parquet", ".pq", ".arrow", ".feather", ".ipc")
"""What a folder has to hold to be a table in parts; a .txt beside them may be anything."""


@dataclass(frozen=True, eq=False)
class Place:
    """Data that can be read on this machine; those of a URL are fetched when they are."""

    name: str
    """As results and messages call it."""
    format: Format
    names: tuple[str, ...]
    """Of the parts; one unless it is a table in parts."""
    remote: Remote | None = None

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The files, copied where they are not on this machine."""
        if self.remote is None:
            return tuple(Part(Path(name), name) for name in self.names)
        if self.format is FORMATS["store"]:
            return (Part(self.remote.fetch_store(), self.name),)
        return tuple(map(Part, self.remote.fetch(), self.names))

    def read(self, columns: Columns) -> Recording | Saved:
        """What is there, before anything is decided about it."""
        if isinstance(self.format, TableFile):
            return recording_of(self.format.table(self.parts, self.name), columns)
        return self.format.read(self.parts[0].path, columns)

    def table(self) -> Table | None:
        """A row per step, where that is how the data are."""
        if isinstance(self.format, TableFile):
            return self.format.table(self.parts, self.name)
        return self.format.table(self.parts[0].path) if isinstance(self.format, Archive) else None

    def stack(self) -> Stack | None:
        """The same, to be read block by block; None where whole arrays are kept."""
        return self.format.stack(self.parts, self.name) if isinstance(self.format, TableFile) else None

    @property
    def bytes(self) -> int:
        """Of all files."""
        return sum(part.path.stat().st_size for part in self.parts)

    @contextmanager
    def named(self) -> Iterator[None]:
        """Messages name the URL and not the copy."""
        try:
            yield
        except InputError as error:
            if self.remote is None:
                raise
            words = str(error)
            for path, name in vars(self).get("parts", ()):  # which may be what failed
                words = words.replace(str(path), name)
            raise InputError(words) from error

    def identity(self) -> list[Any] | None:
        """What tells these data from others without reading them; None where nothing does."""
        if self.remote is not None:
            return self.remote.identity()
        return [[str(Path(name).resolve()), *mark_of(Path(name))] for name in self.names]


def is_place(source: str) -> bool:
    """Whether something is meant that may be located, be it a path that exists, a pattern or a URL."""
    return is_url(source) or Path(local_path(source)).exists() or glob.has_magic(source)


def locate(source: str | os.PathLike[str], format: str | None = None) -> Place:
    """Where the data are that are meant by a path, a pattern or a URL."""
    text = os.fspath(source)
    if is_url(text):
        return _remote(text, format)
    text = local_path(text)
    path = Path(text)
    if path.is_dir() and _has_parts(path, format):
        return _place(
            text, _tables_in(text, [str(each) for each in path.iterdir() if not each.is_dir()]), format
        )
    if path.exists() or not glob.has_magic(text):
        return Place(text, format_of(path, format), (text,))
    return _place(
        text, [name for name in {*glob.glob(text, recursive=True)} if not Path(name).is_dir()], format
    )


def _remote(url: str, format: str | None) -> Place:
    remote = Remote(url)
    names = [file.name for file in remote.files]
    if remote.folder:
        if format in (None, "store") and any(_last(name) == MANIFEST for name in names):
            return Place(remote.name, FORMATS["store"], (remote.name,), remote)
        names = _tables_in(remote.name, names)
    place = _place(remote.name, names, format, remote)
    remote.choose(place.names)
    return place


def _place(source: str, names: Sequence[str], format: str | None, remote: Remote | None = None) -> Place:
    """Files in the order of their names, all of one format; several must be tables."""
    names = sorted((name for name in names if not _last(name).startswith((".", "_"))), key=_in_order)
    if not names:
        raise InputError(f"there is no file {source}")
    formats = [format_named(name, format) for name in names]
    for name, each in zip(names, formats, strict=True):
        if each is not formats[0]:
            raise InputError(
                f"{name} is {each.name}, but {names[0]} {formats[0].name}: the parts of a table are of one "
                "format"
            )
    if len(names) > 1 and not isinstance(formats[0], TableFile):
        raise InputError(
            f"{source} has {len(names)} files, but only tables come in parts; not {formats[0].name}"
        )
    return Place(source, formats[0], tuple(names), remote)


def _has_parts(folder: Path, format: str | None) -> bool:
    """Whether a folder is a table in parts, and not of a format that is one itself."""
    if format is not None:
        return isinstance(FORMATS.get(format), TableFile)
    return not any(each.recognises(folder) for each in FORMATS.values())


def _tables_in(folder: str, names: Sequence[str]) -> list[str]:
    """The tables among the files of a folder."""
    if packed := [name for name in names if suffix_of(name) in COMPRESSED]:
        raise InputError(f"{packed[0]} is compressed; unpack it first")
    found = [name for name in names if suffix_of(name) in IN_FOLDERS]
    if not found:
        raise InputError(f"{folder} holds no table: none of its files ends in {', '.join(IN_FOLDERS)}")
    return found


def _last(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2]


def _in_order(name: str) -> tuple[list[str | int], str]:
    """Names as people sort them: part-2 comes before part-10."""
    return [int(each) if each.isdecimal() else each for each in re.split(r"(\d+)", name)], name
