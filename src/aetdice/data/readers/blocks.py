"""A table in blocks of whole episodes: in memory are a block and the longest episode."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Int

from aetdice.data.columns import Columns
from aetdice.data.readers.arrow import Table, Words, column_from, pyarrow
from aetdice.data.readers.stack import Stack
from aetdice.data.readers.tables import start_of_last

T = TypeVar("T")


class Blocks(NamedTuple):
    """A table, how its columns are used, and what the words of all of it are."""

    stack: Stack
    columns: Columns
    words: Mapping[str, Words]

    def whole(self, names: Sequence[str]) -> Iterator[Table]:
        """Some columns in blocks that end where an episode does, which is looked for."""
        pa = pyarrow()
        waiting: list[Any] = []
        first, due = 0, 0
        for block in ahead(self.stack.blocks(names)):
            waiting.append(block)
            if (rows := sum(each.num_rows for each in waiting)) <= due:
                continue
            arrow = pa.concat_tables(waiting)
            start = start_of_last(self.table(arrow, first), self.columns)
            due = 0 if start else 2 * rows  # a long episode is not looked through again with every block
            if start:
                yield self.table(arrow.slice(0, start), first)
                waiting, first = [arrow.slice(start)], first + start
        if waiting:
            yield self.table(pa.concat_tables(waiting), first)

    def cut(self, names: Sequence[str], rows: Int[np.ndarray, " n"]) -> Iterator[tuple[slice, Table]]:
        """The same where the rows of every episode are known, with the episodes of each block."""
        pa = pyarrow()
        ends = np.cumsum(rows)
        waiting: list[Any] = []
        first, episode, read = 0, 0, 0
        for block in ahead(self.stack.blocks(names)):
            waiting.append(block)
            read += block.num_rows
            after = int(np.searchsorted(ends, read, side="right"))
            if after > episode:
                arrow, size = pa.concat_tables(waiting), int(ends[after - 1]) - first
                yield slice(episode, after), self.table(arrow.slice(0, size), first, episode)
                waiting, first, episode = [arrow.slice(size)], first + size, after

    def shown(self, name: str, row: int) -> str:
        """An entry, for messages."""
        for block in self.stack.blocks([name]):
            if row < block.num_rows:
                return self.table(block, 0).read(name).shown(row)
            row -= block.num_rows
        raise IndexError(row)

    def table(self, arrow: Any, first: int, before: int = 0) -> Table:
        """A block as a table, which begins with a row of the whole and has so many episodes before it."""
        stack = self.stack

        def read(name: str) -> Any:
            return column_from(arrow.column(name), name, stack.source, self.words.get(name))

        def place(row: int) -> str:
            return stack.place(first + row)

        return Table(stack.source, stack.names, arrow.num_rows, read, place, stack.ends, before)


def ahead(items: Iterable[T]) -> Iterator[T]:
    """The same, each made in a thread while the one before is used."""
    source = iter(items)
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, source, None)
        while (found := coming.result()) is not None:
            coming = thread.submit(next, source, None)
            yield found
