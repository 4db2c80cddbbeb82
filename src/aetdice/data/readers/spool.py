"""CSV files as they are parsed: at once, or block by block into a Parquet file that is read in parts."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from aetdice.data.readers.arrow import first_line, pyarrow
from aetdice.data.readers.lines import header, line_of_odd_record, line_of_row, separator
from aetdice.data.readers.stack import Part, check_alike, names_of
from aetdice.errors import InputError

MISSING = ["", "nan", "NaN", "NAN", "null", "NULL", "n/a", "N/A", "NA", "#N/A", "None"]
BLOCK_BYTES = 1 << 24
GROUP_ROWS = 1 << 18
"""Rows that are in memory until they are written."""
WRONG_KIND = re.compile(r"In CSV column #(\d+): CSV conversion error to (.+?): ")


def read_csv(path: Path) -> Any:
    """All of a file, in memory."""
    pa = pyarrow()
    from pyarrow import csv

    try:
        try:
            # Block by block takes a third of the memory, but fixes types by the first block.
            with csv.open_csv(path, **_options(path)) as blocks:
                return blocks.read_all()
        except pa.ArrowInvalid:
            return csv.read_csv(path, **_options(path, newlines_in_values=True))
    except pa.ArrowException as error:
        raise _no_table(path, str(path), error) from error


def spool_csv(parts: Sequence[Part], target: Path) -> list[int]:
    """Write the rows of all parts to a Parquet file; returns the number of every part's first row.

    A column begins with the type of its first block. Where a later value is not of it, all is read again with
    the next type that Arrow would try: the types are those of the same rows read at once.
    """
    pa = pyarrow()
    kinds: dict[str, Any] = {}
    parse: dict[str, Any] = {}
    while True:
        firsts = [0]
        try:
            _write(parts, target, kinds, parse, firsts)
            return firsts
        except pa.ArrowInvalid as error:
            part = parts[len(firsts) - 1]
            if wrong := WRONG_KIND.search(str(error)):
                kinds[header(part.path)[int(wrong[1])]] = _next_kind(wrong[2])
            elif not parse:
                parse["newlines_in_values"] = True
            else:
                raise _no_table(*part, error) from error
        except pa.ArrowException as error:
            raise _no_table(*parts[len(firsts) - 1], error) from error


def place_of_line(parts: Sequence[Part], firsts: Sequence[int], row: int) -> str:
    """The file and the line of a row."""
    part = int(np.searchsorted(firsts, row, side="right")) - 1
    return f"{parts[part].name}, line {line_of_row(parts[part].path, row - firsts[part])}"


def _write(
    parts: Sequence[Part], target: Path, kinds: dict[str, Any], parse: Mapping[str, Any], firsts: list[int]
) -> None:
    """One attempt with types that are known; `kinds` gets the others, and `firsts` an entry per part done."""
    from pyarrow import csv, parquet

    reading = csv.ReadOptions(block_size=BLOCK_BYTES)
    with csv.open_csv(
        parts[0].path, read_options=reading, **_options(parts[0].path, kinds, **parse)
    ) as blocks:
        schema = blocks.schema
    names = names_of(schema, parts[0].name)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{parts[0].name}: two columns are called {twice!r}; rename one")
    kinds |= zip(names, schema.types, strict=True)
    with parquet.ParquetWriter(target, schema, use_dictionary=False, compression="none") as file:
        for part in parts:
            options = _options(part.path, kinds, **parse)
            with csv.open_csv(part.path, read_options=reading, **options) as blocks:
                check_alike(names, names_of(blocks.schema, part.name), parts[0].name, part.name)
                rows = 0
                for block in blocks:
                    file.write_batch(block.select(list(names)), row_group_size=GROUP_ROWS)
                    rows += block.num_rows
            firsts.append(firsts[-1] + rows)


def _next_kind(kind: str) -> Any:
    """What Arrow tries of a column after a type; everything is words in the end."""
    pa = pyarrow()
    times = [pa.timestamp(unit, zone) for unit in ("s", "ns") for zone in (None, "UTC")]
    kinds = [
        pa.null(),
        pa.int64(),
        pa.bool_(),
        pa.date32(),
        pa.time32("s"),
        *times,
        pa.float64(),
        pa.string(),
    ]
    kinds.append(pa.binary())
    return kinds[[str(each) for each in kinds].index(kind) + 1]


def _options(path: Path, kinds: Mapping[str, Any] | None = None, **parse: Any) -> dict[str, Any]:
    """How Arrow is to parse and convert columns."""
    from pyarrow import csv

    convert = csv.ConvertOptions(null_values=MISSING, strings_can_be_null=True, column_types=kinds)
    return {"parse_options": csv.ParseOptions(delimiter=separator(path), **parse), "convert_options": convert}


def _no_table(path: Path, name: str, error: Exception) -> InputError:
    line = line_of_odd_record(path)
    place = name if line is None else f"{name}, line {line}"
    return InputError(f"{place}: not a table: {first_line(error)}")
