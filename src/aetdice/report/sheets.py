"""A table as data: drawn on a terminal, written as Markdown, or shown on a page."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from rich.console import Group, RenderableType
from rich.text import Text

from aetdice.report.tables import columns

BEST, FAINT = "bold green", "dim"
Tone = Literal["", "alarm", "caution", "faint"]
STYLES: Mapping[Tone, str] = {"": "", "alarm": "bold red", "caution": "yellow", "faint": FAINT}


class Cell(NamedTuple):
    """What stands in one place of a table."""

    text: str
    value: float | None = None
    """The number that it is sorted by."""
    best: bool = False
    own: bool = False
    """Whether its row was trained for its column."""
    aside: str = ""
    """Somebody else's number, in brackets."""

    @property
    def plain(self) -> str:
        return f"{self.text} ({self.aside})" if self.aside else self.text


class Line(NamedTuple):
    """A line of a table; faint ones are there for comparison."""

    cells: tuple[Cell, ...]
    faint: bool = False


class Remark(NamedTuple):
    """A sentence below a table."""

    words: str
    tone: Tone = ""


class Sheet(NamedTuple):
    """A table before it is shown; its first column has names."""

    title: str
    headings: tuple[str, ...]
    lines: Sequence[Line]
    remarks: tuple[Remark, ...] = ()
    wordy: tuple[str, ...] = ()
    """Headings of columns that hold sentences."""

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        lines = [
            {"cells": [each._asdict() for each in line.cells], "faint": line.faint} for line in self.lines
        ]
        remarks = [remark._asdict() for remark in self.remarks]
        return {**self._asdict(), "lines": lines, "remarks": remarks}


def line(*cells: str | Cell, faint: bool = False) -> Line:
    """A line of texts and cells."""
    return Line(tuple(Cell(each) if isinstance(each, str) else each for each in cells), faint)


def drawn(sheet: Sheet) -> RenderableType:
    """For a terminal."""
    table = columns(sheet.title, *sheet.headings)
    for each in sheet.lines:
        table.add_row(*map(_styled, each.cells), style=FAINT if each.faint else None)
    for column, heading in zip(table.columns, sheet.headings, strict=True):
        if heading in sheet.wordy:
            column.justify = "left"
    return Group(table, said(sheet.remarks)) if sheet.remarks else table


def said(remarks: Iterable[Remark]) -> Text:
    """Remarks, a line each."""
    return Text("\n").join(Text(words, style=STYLES[tone]) for words, tone in remarks)


def markdown(sheet: Sheet) -> str:
    """Title and table; remarks are left out."""
    cells = (tuple(each.plain for each in line.cells) for line in sheet.lines)
    lines = [sheet.headings, ("---",) * len(sheet.headings), *cells]
    return "\n".join([f"**{sheet.title}**", "", *(f"| {' | '.join(line)} |" for line in lines)])


def _styled(cell: Cell) -> Text:
    text = Text(cell.text, style=BEST if cell.best else "")
    return Text.assemble(text, (f" ({cell.aside})", "not bold dim")) if cell.aside else text
