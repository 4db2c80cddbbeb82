"""Lines of a CSV file as an editor counts them: looked for when a message needs one."""

import csv
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from pathlib import Path

from aetdice.errors import InputError

SIGNS = (",", ";", "\t")
"""Between columns."""
CHUNK = 1 << 20
GZIP = b"\x1f\x8b"
"""How compressed files begin, whatever they are called."""


def separator(path: Path) -> str:
    """The sign between columns, known by the header."""
    with path.open("rb") as file:
        header = file.readline(CHUNK)
    if header.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        raise InputError(f"{path} is in UTF-16; save it as UTF-8")
    if header.startswith(GZIP):
        raise InputError(f"{path} is compressed; unpack it first")
    return next((sign for sign in SIGNS if sign.encode() in header), SIGNS[0])


def header(path: Path) -> list[str]:
    """The names of the columns."""
    return next(_records(path), (0, []))[1]


def line_of_row(path: Path, row: int) -> int:
    """The line on which a row begins, counted from 1; the header is no row."""
    if _is_plain(path):
        return row + 2
    for number, (line, _) in enumerate(_records(path)):
        if number == row + 1:
            return line
    return row + 2


def line_of_odd_record(path: Path) -> int | None:
    """The first line that does not have the header's number of columns."""
    width = None
    for line, record in _records(path):
        width = len(record) if width is None else width
        if len(record) != width:
            return line
    return None


def _is_plain(path: Path) -> bool:
    """Whether every line is a row: nothing is quoted, so no cell has a line break, and no line is empty."""
    last = b""
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            seen = last + chunk.replace(b"\r\n", b"\n")
            if b'"' in seen or b"\n\n" in seen:
                return False
            last = seen[-1:]
    return True


def _records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Every record that is not empty, and the line on which it begins; as far as the file can be read."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        reader, begin = csv.reader(file, delimiter=separator(path)), 1
        try:
            for record in reader:
                if record:
                    yield begin, record
                begin = reader.line_num + 1
        except csv.Error:
            return
