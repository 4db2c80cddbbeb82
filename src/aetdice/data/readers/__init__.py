"""Files of logged episodes: one class per format, one registry; to be listed is to be tested."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from aetdice.data.columns import Columns
from aetdice.data.episodes import Episodes
from aetdice.data.interpretation import interpret, resettled
from aetdice.data.readers.arrays import Archive, D4morl, Minari, Store
from aetdice.data.readers.arrow import as_table
from aetdice.data.readers.base import Format, Recording, Saved
from aetdice.data.readers.files import Csv, Parquet, TableFile
from aetdice.data.readers.tables import recording_of
from aetdice.errors import InputError

FORMATS: dict[str, Format] = {
    each.name: each for each in (Csv(), Parquet(), Archive(), Minari(), D4morl(), Store())
}
"""Every format by name."""
COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip", ".7z")

__all__ = [
    "FORMATS",
    "Archive",
    "Format",
    "Recording",
    "TableFile",
    "finished",
    "format_of",
    "read_file",
    "read_table",
]


def format_of(path: Path, name: str | None = None) -> Format:
    """The format of a path that exists, as given or by its looks."""
    if name is not None:
        if name not in FORMATS:
            raise InputError(f"there is no format {name!r}; known: {', '.join(FORMATS)}")
        return FORMATS[name]
    if not path.exists():
        raise InputError(f"there is no file {path}")
    for each in FORMATS.values():
        if each.recognises(path):
            return each
    if path.suffix.lower() in COMPRESSED:
        raise InputError(f"{path} is compressed; unpack it first")
    known = "; ".join(f"{each.name}: {each.words}" for each in FORMATS.values())
    raise InputError(f"{path} is of no known format ({known}); name one")


def read_file(
    path: Path,
    columns: Columns | None = None,
    *,
    ends: str | None = None,
    horizon: int | None = None,
    format: str | None = None,
) -> Episodes:
    """The episodes of a file."""
    return finished(format_of(path, format).read(path, columns or Columns()), ends, horizon)


def read_table(
    data: Any, columns: Columns | None = None, *, ends: str | None = None, horizon: int | None = None
) -> Episodes:
    """The episodes of a pandas or Polars frame, or of anything else that speaks Arrow."""
    found = finished(recording_of(as_table(data), columns or Columns()), ends, horizon)
    return replace(found, origin=None)  # no file can be read again


def finished(found: Recording | Saved, ends: str | None = None, horizon: int | None = None) -> Episodes:
    """Episodes from what a format hands over."""
    if isinstance(found, Saved):
        return resettled(found.episodes, ends, horizon)
    return interpret(found, ends or found.ends, horizon)
