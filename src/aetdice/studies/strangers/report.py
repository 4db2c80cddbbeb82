"""What the suite shows: gap closed per problem and family, the verdict's confusion table, wrong verdicts."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from aetdice.report.tables import columns
from aetdice.studies.parts import Results
from aetdice.studies.strangers.problem import ALPHAS
from aetdice.studies.study import Overview

GOOD, POOR, LOW = 0.9, 0.5, 0.6
"""Shares of the gap: closed, lost, and what no trusted policy should stay below."""
CLASSES = ("≥ 90 %", "50 to 90 %", "< 50 % or below the data")
VERDICTS = {True: "trusted", False: "not trusted"}
Cell = Mapping[str, Any]
"""One objective and seed of one problem."""


class Row(NamedTuple):
    """A line of a table, on a terminal or in Markdown."""

    cells: tuple[str, ...]


class Sheet(NamedTuple):
    """A table before it is drawn."""

    title: str
    headings: tuple[str, ...]
    rows: list[Row]


def overview(results: Results, notes: Sequence[str] = ()) -> Overview:
    """All tables of the parts that are done, and notes on what is left out."""
    found = [each for each in results.values() if "cells" in each]
    sheets = [problem_sheet(found), family_sheet(found), *confusion_sheets(found), wrong_sheet(found)]
    sheets = [sheet for sheet in sheets if sheet.rows]
    return Overview(
        [*(drawn(sheet) for sheet in sheets), *map(Text, notes)], [*map(markdown, sheets), *notes]
    )


def kind_of(cell: Cell) -> str | None:
    """Which class of policy a cell's is; None where there was no gap to close."""
    if cell["gap"] is None:
        return None
    below = cell["gap_from_data"] is not None and cell["score"] < cell["data"]
    if cell["gap"] < POOR or below:
        return CLASSES[2]
    return CLASSES[0] if cell["gap"] >= GOOD else CLASSES[1]


def problem_sheet(found: Sequence[Mapping[str, Any]]) -> Sheet:
    """By problem and objective: the gap closed, median over seeds, and ✓ for each trusted seed."""
    rows = []
    for each in found:
        by_objective = {label: [c for c in each["cells"] if c["objective"] == label] for label in ALPHAS}
        shown = (_gap_and_marks(cells) for cells in by_objective.values())
        rows.append(Row((each["problem"], each["half"], *shown, f"{each['seconds']:.0f} s")))
    headings = ("problem", "half", *ALPHAS, "training")
    return Sheet(
        "Gap closed from the twin to the reference; ✓ trusted, ✗ not, ↓ below the data", headings, rows
    )


def family_sheet(found: Sequence[Mapping[str, Any]]) -> Sheet:
    """By family and half, then all together: medians over cells."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for each in found:
        for family in (each["family"], "all"):
            groups.setdefault((each["half"], family), []).append(each)
    rows = []
    for (half, family), members in sorted(groups.items(), key=lambda item: (item[0][1] == "all", item[0])):
        cells = [cell for each in members for cell in each["cells"]]
        gaps = [cell["gap"] for cell in cells if cell["gap"] is not None]
        from_data = [cell["gap_from_data"] for cell in cells if cell["gap_from_data"] is not None]
        numbers = (
            str(len(members)),
            _median(gaps),
            _median(from_data),
            _share([gap >= GOOD for gap in gaps]),
            _share([cell["trusted"] for cell in cells]),
            f"{np.median([each['seconds'] for each in members]):.0f} s",
        )
        rows.append(Row((family, half, *numbers)))
    headings = ("family", "half", "problems", "median gap", "from the data", "≥ 90 %", "trusted", "training")
    return Sheet("Families", headings, rows)


def confusion_sheets(found: Sequence[Mapping[str, Any]]) -> list[Sheet]:
    """Verdict × what the policy closes, for each half."""
    sheets = []
    for half in dict.fromkeys(each["half"] for each in found):
        cells = [cell for each in found if each["half"] == half for cell in each["cells"]]
        counts = confusion(cells)
        rows = [
            Row((words, *(str(counts[trusted, kind]) for kind in CLASSES)))
            for trusted, words in VERDICTS.items()
        ]
        right = (
            _ratio(counts[True, CLASSES[0]], counts[False, CLASSES[0]]),
            "",
            _ratio(counts[False, CLASSES[2]], counts[True, CLASSES[2]]),
        )
        sheets.append(Sheet(f"The verdict, {half}", ("", *CLASSES), [*rows, Row(("right", *right))]))
    return sheets


def confusion(cells: Iterable[Cell]) -> dict[tuple[bool, str], int]:
    """How many cells of every verdict and class."""
    counts = {(trusted, kind): 0 for trusted in VERDICTS for kind in CLASSES}
    for cell in cells:
        if (kind := kind_of(cell)) is not None:
            counts[bool(cell["trusted"]), kind] += 1
    return counts


def wrong_sheet(found: Sequence[Mapping[str, Any]]) -> Sheet:
    """Policies that are trusted but close less than 60 % or are below the data; good ones that are not."""
    rows = []
    for each in found:
        for cell in each["cells"]:
            kind = kind_of(cell)
            bad = kind == CLASSES[2] or (kind is not None and cell["gap"] < LOW)
            if (bad and cell["trusted"]) or (kind == CLASSES[0] and not cell["trusted"]):
                where = f"{each['problem']}, {cell['objective']}, seed {cell['seed']}"
                scores = (f"{cell[name]:.3f}" for name in ("score", "twin", "data", "best"))
                rows.append(Row((where, percent(cell["gap"]), *scores, cell["verdict"])))
    return Sheet("Wrong verdicts", ("cell", "gap", "J", "twin", "data", "reference", "verdict"), rows)


def drawn(sheet: Sheet) -> RenderableType:
    table: Table = columns(sheet.title, *sheet.headings)
    for row in sheet.rows:
        table.add_row(*row.cells)
    return table


def markdown(sheet: Sheet) -> str:
    lines = [sheet.headings, ("---",) * len(sheet.headings), *(row.cells for row in sheet.rows)]
    return "\n".join([f"**{sheet.title}**", "", *(f"| {' | '.join(line)} |" for line in lines)])


def percent(share: float | None) -> str:
    return "no gap" if share is None else f"{100 * share:.0f} %"


def _gap_and_marks(cells: Sequence[Cell]) -> str:
    if not cells:
        return ""
    gaps = [cell["gap"] for cell in cells if cell["gap"] is not None]
    below = any(c["gap_from_data"] is not None and c["score"] < c["data"] for c in cells)
    marks = "".join("✓" if cell["trusted"] else "✗" for cell in cells)
    return f"{percent(float(np.median(gaps)) if gaps else None)} {marks}{' ↓' if below else ''}"


def _median(shares: Sequence[float]) -> str:
    return percent(float(np.median(shares)) if shares else None)


def _share(flags: Sequence[bool]) -> str:
    return percent(float(np.mean(flags))) if flags else ""


def _ratio(right: int, wrong: int) -> str:
    return percent(right / (right + wrong)) if right + wrong else ""
