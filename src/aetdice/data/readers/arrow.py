"""Arrow tables: column by column into NumPy. The only file that knows pyarrow's types."""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int, Shaped

from aetdice.data.coding import Value, listed
from aetdice.data.readers.base import Column
from aetdice.errors import InputError

MOST_CATEGORIES = 256
NUMBER = re.compile(r"[-+]?\d+(?:[.,]\d+)*")


class Table(NamedTuple):
    """A table whose columns are read one at a time, so that few of them are in memory."""

    source: str
    names: tuple[str, ...]
    rows: int
    read: Callable[[str], Column]
    """A column as it is; `load` has those that are numbers or categories."""
    place: Callable[[int], str] | None = None
    """How a row is called in messages, where that is not by its number in the source."""
    ends: str | None = None
    """What the file says of truncated ends, if it does."""
    before: int = 0
    """Episodes that come before, where this is a block of a table."""

    def load(self, name: str) -> Column:
        """A column of numbers or of categories; `InputError` for dates and times, which only tell apart."""
        column = self.read(name)
        if column.values.dtype.kind in "mM":
            raise InputError(
                f"{self.source}: column {name!r} holds times ({column.values.dtype}): turn them into "
                f"numbers, or {leaving(name)}"
            )
        return column

    def row(self, row: int) -> str:
        return f"{self.source}, row {row}" if self.place is None else self.place(row)


def pyarrow() -> Any:
    """The package, or how to install it."""
    try:
        import pyarrow as pa
        import pyarrow.compute
    except ImportError as error:
        raise InputError(f"pyarrow is not installed ({error}); pip install 'aetdice[tables]'") from error
    return pa


def table_from(arrow: Any, source: str = "the table") -> Table:
    """An Arrow table, whose parts are in memory already."""
    try:
        names = tuple(arrow.column_names)
    except UnicodeDecodeError as error:
        raise InputError(f"{source}: the names of its columns are not UTF-8; save it as UTF-8") from error
    return Table(
        source,
        names,
        arrow.num_rows,
        lambda name: column_from(arrow.column(name), name, source),
    )


def as_table(data: Any) -> Table:
    """A pandas or Polars frame or anything else that speaks Arrow; a table is left as it is."""
    pa = pyarrow()
    try:
        return table_from(pa.table(data))
    except (pa.ArrowException, TypeError, ValueError, KeyError) as error:
        raise InputError(
            f"this {type(data).__name__} cannot be read as a table: {first_line(error)}"
        ) from error


class Words(NamedTuple):
    """What the words of a column are in all of a table, of which a block may have few."""

    numbers: bool
    """Whether every one is a number."""
    known: tuple[str, ...] | None = None
    """Else all of them in order; None where they only tell rows apart."""


def column_from(chunks: Any, name: str, source: str, words: Words | None = None) -> Column:
    """A column of numbers, categories, dates or times; `InputError` for what is none of them."""
    pa = pyarrow()
    kind = chunks.type
    if pa.types.is_dictionary(kind):
        kind = pa.large_string() if pa.types.is_string_view(kind.value_type) else kind.value_type
        chunks = pa.chunked_array(
            [chunk.dictionary.cast(kind).take(chunk.indices) for chunk in chunks.chunks], kind
        )
    if pa.types.is_null(kind):
        chunks, kind = chunks.cast(pa.float64()), pa.float64()
    if pa.types.is_decimal(kind):
        chunks, kind = chunks.cast(pa.float64()), pa.float64()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return _categories(pa, chunks, words)
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return _times(pa, chunks)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise InputError(f"{source}: column {name!r} {_advice(pa, kind, name)}")
    dtype = np.dtype(bool) if pa.types.is_boolean(kind) else np.dtype(kind.to_pandas_dtype())
    missing = None
    if chunks.null_count:
        missing = chunks.is_null().combine_chunks().to_numpy(zero_copy_only=False)
        chunks = chunks.fill_null(False if dtype.kind == "b" else 0)
    values = np.empty(len(chunks), dtype)
    start = 0
    for chunk in chunks.chunks:
        values[start : start + len(chunk)] = chunk.to_numpy(zero_copy_only=False)
        start += len(chunk)
    return Column(values, None, missing)


def leaving(name: str) -> str:
    """How to do without a column."""
    return f"leave the column out (--columns ignored={name})"


def _advice(pa: Any, kind: Any, name: str) -> str:
    if pa.types.is_nested(kind):
        return f"holds lists (an image, perhaps): give every number a column of its own, or {leaving(name)}"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return (
            f"holds bytes (an image, perhaps), which are not learned from: {leaving(name)}, or save text as "
            "UTF-8"
        )
    if pa.types.is_temporal(kind):
        return f"holds times ({kind}): turn them into numbers, or {leaving(name)}"
    return f"is of type {kind}, which is neither a number nor a category: {leaving(name)}"


def _times(pa: Any, chunks: Any) -> Column:
    missing = chunks.is_null().combine_chunks().to_numpy(zero_copy_only=False) if chunks.null_count else None
    unit = "D" if pa.types.is_date(chunks.type) else chunks.type.unit
    return Column(chunks.combine_chunks().to_numpy(zero_copy_only=False).astype(f"M8[{unit}]"), None, missing)


def _categories(pa: Any, chunks: Any, known: Words | None) -> Column:
    """Words in their alphabetical order; words that are numbers throughout are numbers."""
    encoded = chunks.combine_chunks().cast(pa.large_string()).dictionary_encode()
    words = encoded.dictionary.to_pylist()
    codes = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    missing = encoded.is_null().to_numpy(zero_copy_only=False) if encoded.null_count else None
    parsed = [number_in(word) for word in words] if known is None or known.numbers else [None]
    if all(number is not None for number in parsed):
        return Column(np.array(parsed or [0], float)[codes], None, missing)
    order = known.known if known is not None and known.known is not None else tuple(sorted(words))
    places = {word: place for place, word in enumerate(order)}
    ranks = np.array([places[word] for word in words] or [0], np.int64)
    return Column(ranks[codes], order, missing)


def words_in(chunks: Any) -> tuple[list[str], Int[np.ndarray, " words"]]:
    """The words of a column, and the row in which each is first."""
    pa = pyarrow()
    encoded = chunks.combine_chunks().cast(pa.large_string()).dictionary_encode()
    present = encoded.indices.is_valid().to_numpy(zero_copy_only=False)
    codes = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(present)
    _, first = np.unique(codes[rows], return_index=True)
    return encoded.dictionary.to_pylist(), rows[first]


def check_category(
    words: Sequence[Value],
    first: Callable[[Sequence[int]], tuple[int, int]],
    name: str,
    place: Callable[[int], str],
    said: bool = False,
) -> None:
    """`InputError` where words are numbers with a slip among them, or far too many to be categories.

    `first` is the row where one of some words stands first, and which it is. Words like 1,5 are taken for
    numbers unless it was `said` that they are categories.
    """
    commas = any("," in str(word) for word in words)
    if commas and not said and all(NUMBER.fullmatch(str(word)) for word in words):
        raise InputError(
            f"{place(0)}: column {name!r} holds numbers with commas ({listed(words)}): write them with a "
            f"point; if they are labels, say --columns categories={name}"
        )
    odd = [index for index, word in enumerate(words) if number_in(str(word)) is None]
    if len(words) >= 4 and odd and len(odd) <= len(words) / 2:
        row, which = first(odd)
        raise InputError(
            f"{place(row)}: column {name!r} holds numbers, but here {words[which]!r}; "
            f"correct it, or {leaving(name)}"
        )
    if len(words) > MOST_CATEGORIES:
        raise InputError(
            f"{place(0)}: column {name!r} has {len(words)} different words, more than "
            f"{MOST_CATEGORIES}: text is not learned from; {leaving(name)}"
        )


def number_in(word: str) -> float | None:
    """The number that a word is; 1_0 is a word here, whatever Python says."""
    try:
        return None if "_" in word else float(word)
    except ValueError:
        return None


def arrow_column(values: Shaped[np.ndarray, " rows"], words: tuple[Value, ...] | None, mask: Any) -> Any:
    """A column for writing; masked entries are missing."""
    pa = pyarrow()
    if words is None:
        return pa.array(values, mask=mask)
    found = pa.DictionaryArray.from_arrays(
        pa.array(values.astype(np.int32), mask=mask), pa.array(list(words))
    )
    return found.cast(found.type.value_type)


def first_line(error: BaseException) -> str:
    return (str(error) or repr(error)).strip().splitlines()[0]
