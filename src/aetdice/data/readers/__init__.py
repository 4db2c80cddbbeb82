"""Files of logged episodes: one class per format, one registry; to be listed is to be tested."""

from dataclasses import replace
from os import PathLike
from typing import Any

from aetdice.data.columns import Columns
from aetdice.data.episodes import Episodes
from aetdice.data.interpretation import interpret, resettled
from aetdice.data.readers.arrays import Archive
from aetdice.data.readers.arrow import as_table
from aetdice.data.readers.base import Format, Recording, Saved
from aetdice.data.readers.files import TableFile
from aetdice.data.readers.formats import FORMATS, format_of
from aetdice.data.readers.places import Place, is_place, locate
from aetdice.data.readers.tables import recording_of

__all__ = [
    "FORMATS",
    "Archive",
    "Format",
    "Place",
    "Recording",
    "TableFile",
    "finished",
    "format_of",
    "is_place",
    "locate",
    "read_file",
    "read_place",
    "read_table",
]


def read_file(
    source: str | PathLike[str],
    columns: Columns | None = None,
    *,
    ends: str | None = None,
    horizon: int | None = None,
    format: str | None = None,
) -> Episodes:
    """The episodes of a file, a store, or a table in parts, here or at a URL."""
    return read_place(locate(source, format), columns or Columns(), ends, horizon)


def read_place(place: Place, columns: Columns, ends: str | None, horizon: int | None) -> Episodes:
    """The episodes of what was located."""
    with place.named():
        return finished(place.read(columns), ends, horizon)


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
