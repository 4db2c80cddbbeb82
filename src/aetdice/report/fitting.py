"""Tables that fit their terminal: a wide one is cut between columns instead of within numbers."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from rich.console import Console, ConsoleOptions
from rich.measure import Measurement
from rich.table import Table

NATURAL = 10_000
"""Columns of a terminal that nothing is too wide for."""


class FittingTable(Table):
    """A table in parts below each other, where it is wider than the terminal; each has the first column."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Any]:
        roomy = options.update(max_width=NATURAL)
        if self._width(self, console, roomy) <= options.max_width or len(self.columns) < 3:
            yield from super().__rich_console__(console, options)
            return
        groups = list(self._groups(console, roomy, options.max_width))
        for number, group in enumerate(groups):
            part = self._part(group)
            part.title = self.title if number == 0 else None
            part.caption = self.caption if number == len(groups) - 1 else None
            yield part

    def _groups(self, console: Console, roomy: ConsoleOptions, width: int) -> Iterator[list[int]]:
        """Numbers of columns that fit side by side, one after the first at the least."""
        group = [0]
        for index in range(1, len(self.columns)):
            if len(group) > 1 and self._width(self._part([*group, index]), console, roomy) > width:
                yield group
                group = [0]
            group.append(index)
        yield group

    def _part(self, group: list[int]) -> Table:
        part = Table(
            title_justify=self.title_justify,
            title_style=self.title_style,
            caption_justify=self.caption_justify,
        )
        part.columns = [replace(self.columns[index], _index=place) for place, index in enumerate(group)]
        part.rows = self.rows
        return part

    @staticmethod
    def _width(table: Table, console: Console, roomy: ConsoleOptions) -> int:
        plain = table.title, table.caption
        table.title = table.caption = None  # words wrap, numbers do not
        width = Measurement.get(console, roomy, table).maximum
        table.title, table.caption = plain
        return width
