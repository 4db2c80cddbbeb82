"""Every format of logged episodes by name; to be listed is to be tested."""

from pathlib import Path

from aetdice.data.readers.arrays import Archive, D4morl, Minari, Store
from aetdice.data.readers.base import Format
from aetdice.data.readers.files import Arrow, Csv, Parquet
from aetdice.data.urls import suffix_of
from aetdice.errors import InputError

FORMATS: dict[str, Format] = {
    each.name: each for each in (Csv(), Parquet(), Arrow(), Archive(), Minari(), D4morl(), Store())
}
"""Every format by name."""
COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip", ".7z")


def format_of(path: Path, name: str | None = None) -> Format:
    """The format of a path that exists, as given or by its looks."""
    if name is None and not path.exists():
        raise InputError(f"there is no file {path}")
    looks = (each for each in FORMATS.values() if name is None and each.recognises(path))
    return next(looks, None) or format_named(str(path), name)


def format_named(file: str, name: str | None = None) -> Format:
    """The format of a file, be it here or elsewhere, as given or by its name."""
    if name is not None:
        if name not in FORMATS:
            raise InputError(f"there is no format {name!r}; known: {', '.join(FORMATS)}")
        return FORMATS[name]
    suffix = suffix_of(file)
    if suffix in COMPRESSED:
        raise InputError(f"{file} is compressed; unpack it first")
    for each in FORMATS.values():
        if suffix in each.suffixes:
            return each
    known = "; ".join(f"{each.name}: {each.words}" for each in FORMATS.values())
    raise InputError(f"{file} is of no known format ({known}); name one")
