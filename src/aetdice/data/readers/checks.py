"""What a table must obey: no words among numbers, steps that count, flags at the end only."""

import numpy as np
from jaxtyping import Bool, Int

from aetdice.data.readers.arrow import Table, number_in
from aetdice.data.readers.base import Column
from aetdice.errors import InputError

MEND = "aetdice doctor FILE --fix OUT mends it"


def word_in(table: Table, what: str, column: Column, expected: str) -> InputError:
    """Where the first word stands in a column that should have none."""
    odd = np.array([number_in(str(word)) is None for word in column.categories or ()])
    return odd_in(table, what, column, odd, expected)


def odd_in(
    table: Table, what: str, column: Column, odd: Bool[np.ndarray, " words"], expected: str
) -> InputError:
    """Where the first of the words that are odd stands."""
    there = np.isin(column.values, np.flatnonzero(odd))
    row = int(np.flatnonzero(there if column.missing is None else there & ~column.missing)[0])
    return InputError(f"{table.row(row)}: {what} is {column.shown(row)}, not {expected}")


def is_flag(word: object) -> bool:
    """Whether a word is true or false, 0 or 1."""
    return str(word).strip().lower() in ("true", "false", "1", "0")


def missing_in(column: Column) -> Bool[np.ndarray, " rows"] | None:
    if column.values.dtype.kind != "f":
        return column.missing
    nan = np.isnan(column.values)
    if column.missing is not None:
        nan |= column.missing
    return nan if nan.any() else None


def check_closing(table: Table, closing: Bool[np.ndarray, " rows"], lasts: Int[np.ndarray, " n"]) -> None:
    inside = closing.copy()
    inside[lasts] = False
    if inside.any():
        row = int(np.flatnonzero(inside)[0])
        raise InputError(
            f"{table.row(row)}: action and rewards are missing, which only the last row of an episode may do"
        )


def check_steps(table: Table, name: str, starts: Int[np.ndarray, " n"]) -> None:
    """Every episode counts its steps from the same number, by one."""
    column = table.load(name)
    gap = missing_in(column)
    if column.categories is not None:
        raise word_in(table, f"step column {name!r}", column, "a whole number")
    if gap is not None:
        row = int(np.flatnonzero(gap)[0])
        raise InputError(f"{table.row(row)}: step column {name!r} is {column.shown(row)}, not a whole number")
    jumps = np.diff(column.values.astype(np.float64))
    jumps[starts[1:] - 1] = 1
    if (wrong := np.flatnonzero(jumps != 1)).size:
        row = int(wrong[0]) + 1
        before, here = column.shown(row - 1), column.shown(row)
        kind = (
            "is repeated" if jumps[row - 1] == 0
            else f"comes after step {before}: the rows are out of order" if jumps[row - 1] < 0
            else f"comes after step {before}: a step is missing, or {name!r} does not count steps (step=- "
            "then leaves it out)"
        )  # fmt: skip
        raise InputError(f"{table.row(row)}: step {here} {kind}{'' if jumps[row - 1] > 0 else f' ({MEND})'}")
    first = column.values[starts]
    if (other := np.flatnonzero(first != first[0])).size:
        raise beginning_missing(table, int(starts[other[0]]), column, column.shown(0))


def beginning_missing(table: Table, row: int, column: Column, first: str) -> InputError:
    """That an episode begins with another step than the first one does."""
    return InputError(
        f"{table.row(row)}: the episode begins with step {column.shown(row)}, but the first one with "
        f"{first}: its beginning is missing"
    )


def flags_at_ends(
    table: Table,
    name: str,
    flags: Bool[np.ndarray, " rows"],
    ends: Int[np.ndarray, " n"],
    lasts: Int[np.ndarray, " n"],
) -> Bool[np.ndarray, " n"]:
    """The flag of every episode, from its last step or from the observation after it; nowhere else."""
    inside = flags.copy()
    inside[ends] = inside[lasts] = False
    if inside.any():
        row = int(np.flatnonzero(inside)[0])
        raise InputError(f"{table.row(row)}: {name} here, but the episode goes on")
    return flags[ends] | flags[lasts]
