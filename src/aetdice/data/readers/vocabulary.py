"""The words of a table's columns, gathered before it is read in blocks: no block has all of them."""

from collections.abc import Iterator, Sequence
from typing import Any

from aetdice.data.columns import Columns
from aetdice.data.readers.arrow import Words, check_category, leaving, number_in, pyarrow, words_in
from aetdice.data.readers.checks import is_flag
from aetdice.data.readers.stack import Stack
from aetdice.errors import InputError

MOST_WORDS = 4096
"""Different words that are remembered of a column; with more it can only be one of numbers."""


def words_of(stack: Stack, columns: Columns, names: Sequence[str], blocks: Iterator[Any]) -> dict[str, Words]:
    """What the words of these columns are, each of which holds words; `InputError` where they are too many.

    Of the column that names episodes nothing is remembered but whether all are numbers.
    """
    found = {name: _Vocabulary(stack, name, name == columns.episode) for name in names}
    row = 0
    for block in blocks:
        for name, each in found.items():
            each.add(block.column(name), row)
        row += block.num_rows
    for each in found.values():
        each.check(columns)
    return {name: each.words() for name, each in found.items()}


def text_columns(stack: Stack, names: Sequence[str]) -> list[str]:
    """Those of the columns that hold words."""
    pa = pyarrow()
    return [name for name in names if pa.types.is_large_string(stack.type_of(name))]


class _Vocabulary:
    """The words of one column, and the row in which each is first."""

    def __init__(self, stack: Stack, name: str, tells_apart: bool) -> None:
        self.stack, self.name, self.tells_apart = stack, name, tells_apart
        self.rows: dict[str, int] = {}
        self.odd: int | None = None
        """The row of the first word that is no number."""
        self.many = False

    def add(self, chunks: Any, row: int) -> None:
        if self.tells_apart and self.odd is not None:
            return
        words, firsts = words_in(chunks)
        for word, first in zip(words, (row + firsts).tolist(), strict=True):
            if word not in self.rows and number_in(word) is None and (self.odd is None or first < self.odd):
                self.odd = first
            if not self.tells_apart and not self.many:
                self.rows.setdefault(word, first)
        self.many = self.many or len(self.rows) > MOST_WORDS
        if self.many and self.odd is not None:
            raise InputError(
                f"{self.stack.place(self.odd)}: column {self.name!r} has more than {MOST_WORDS:,} different "
                f"words, here one that is no number: text is not learned from; {leaving(self.name)}"
            )

    def check(self, columns: Columns) -> None:
        """`InputError` where the column's role does not allow its words."""
        name, flags = self.name, (columns.terminated, columns.truncated)
        if self.odd is None or self.tells_apart:
            return
        if name in (*columns.rewards, columns.step):
            what = f"{'step' if name == columns.step else 'reward'} column {name!r}"
            wanted = "a whole number" if name == columns.step else "a number"
            raise InputError(f"{self.stack.place(self.odd)}: {what} is {self._at(self.odd)!r}, not {wanted}")
        if name in flags:
            if wrong := [row for word, row in self.rows.items() if not is_flag(word)]:
                place, word = self.stack.place(min(wrong)), self._at(min(wrong))
                raise InputError(f"{place}: column {name!r} is {word!r}, not true or false, 0 or 1")
            return
        words = sorted(self.rows)
        check_category(words, self._first, name, self.stack.place, name in columns.categories)

    def words(self) -> Words:
        """What a block has to know of them."""
        if self.odd is None:
            return Words(True)
        return Words(False, None if self.tells_apart else tuple(sorted(self.rows)))

    def _first(self, chosen: Sequence[int]) -> tuple[int, int]:
        words = sorted(self.rows)
        return min((self.rows[words[index]], index) for index in chosen)

    def _at(self, row: int) -> str:
        return next(word for word, first in self.rows.items() if first == row)
