"""What the suite shows: gap closed per problem and family, the verdict's confusion table, wrong verdicts."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from aetdice.learning.table import Rows
from aetdice.report.sheets import Cell, Sheet, line
from aetdice.studies.parts import Results
from aetdice.studies.strangers.problem import ALPHAS
from aetdice.studies.study import Overview

GOOD, POOR, LOW = 0.9, 0.5, 0.6
"""Shares of the gap: closed, lost, and what no trusted policy should stay below."""
CLASSES = ("≥ 90 %", "50 to 90 %", "< 50 % or below the data")
RIGHT = ((True, CLASSES[0]), (False, CLASSES[2]))
"""Verdicts that are as they should be."""
VERDICTS = {True: "trusted", False: "not trusted"}
Measured = Mapping[str, Any]
"""One objective and seed of one problem."""


def overview(results: Results, notes: Sequence[str] = ()) -> Overview:
    """All tables of the parts that are done, and notes on what is left out."""
    found = [each for each in results.values() if "cells" in each]
    sheets = [problem_sheet(found), family_sheet(found), *confusion_sheets(found), wrong_sheet(found)]
    return Overview([sheet for sheet in sheets if sheet.lines], list(notes), answer(found))


def members(results: Results) -> Rows:
    """The selected members of every problem, as rows of a table."""
    return [
        {
            **cell["params"],
            "dataset": found["problem"],
            **{name: cell[name] for name in ("objective", "seed", "score", "verdict", "trusted")},
            "selected": True,
            "twin_score": cell["twin"],
            "data_score": cell["data"],
            "settings": {},
            "diagnostics": cell["diagnostics"],
            "job": part,
        }
        for part, found in results.items()
        for cell in found["cells"]
    ]


def answer(found: Sequence[Mapping[str, Any]]) -> str:
    """What was closed, and how far the verdict is to be believed."""
    cells = [cell for each in found for cell in each["cells"]]
    gaps = [cell["gap"] for cell in cells if cell["gap"] is not None]
    if not gaps:
        return ""
    counts = confusion(cells)
    trusted, others = (sum(counts[word, kind] for kind in CLASSES) for word in VERDICTS)
    lost, closed = counts[True, CLASSES[2]], counts[False, CLASSES[0]]
    return (
        f"With nothing set, {_median(gaps).text} of the gap is closed in the median, over {len(gaps)} "
        f"policies of {len(found)} problems. Of {trusted} that are trusted {lost} lost half of it or more, "
        f"or are below the data; of {others} that are not trusted {closed} closed 90 % of it."
    )


def kind_of(cell: Measured) -> str | None:
    """Which class of policy a cell's is; None where there was no gap to close."""
    if cell["gap"] is None:
        return None
    below = cell["gap_from_data"] is not None and cell["score"] < cell["data"]
    if cell["gap"] < POOR or below:
        return CLASSES[2]
    return CLASSES[0] if cell["gap"] >= GOOD else CLASSES[1]


def problem_sheet(found: Sequence[Mapping[str, Any]]) -> Sheet:
    """By problem and objective: the gap closed, median over seeds, and ✓ for each trusted seed."""
    lines = []
    for each in found:
        by_objective = {label: [c for c in each["cells"] if c["objective"] == label] for label in ALPHAS}
        shown = (_gap_and_marks(cells) for cells in by_objective.values())
        lines.append(line(each["problem"], each["half"], *shown, _seconds(each["seconds"])))
    headings = ("problem", "half", *ALPHAS, "training")
    return Sheet(
        "Gap closed from the twin to the reference; ✓ trusted, ✗ not, ↓ below the data", headings, lines
    )


def family_sheet(found: Sequence[Mapping[str, Any]]) -> Sheet:
    """By family and half, then all together: medians over cells."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for each in found:
        for family in (each["family"], "all"):
            groups.setdefault((each["half"], family), []).append(each)
    lines = []
    for (half, family), members in sorted(groups.items(), key=lambda item: (item[0][1] == "all", item[0])):
        cells = [cell for each in members for cell in each["cells"]]
        gaps = [cell["gap"] for cell in cells if cell["gap"] is not None]
        from_data = [cell["gap_from_data"] for cell in cells if cell["gap_from_data"] is not None]
        numbers = (
            Cell(str(len(members)), len(members)),
            _median(gaps),
            _median(from_data),
            _share([gap >= GOOD for gap in gaps]),
            _share([cell["trusted"] for cell in cells]),
            _seconds(float(np.median([each["seconds"] for each in members]))),
        )
        lines.append(line(family, half, *numbers))
    headings = ("family", "half", "problems", "median gap", "from the data", "≥ 90 %", "trusted", "training")
    return Sheet("Families", headings, lines)


def confusion_sheets(found: Sequence[Mapping[str, Any]]) -> list[Sheet]:
    """Verdict × what the policy closes, for each half."""
    sheets = []
    for half in dict.fromkeys(each["half"] for each in found):
        cells = [cell for each in found if each["half"] == half for cell in each["cells"]]
        counts = confusion(cells)
        lines = [
            line(words, *(_counted(counts[trusted, kind], (trusted, kind) in RIGHT) for kind in CLASSES))
            for trusted, words in VERDICTS.items()
        ]
        right = (
            _ratio(counts[True, CLASSES[0]], counts[False, CLASSES[0]]),
            "",
            _ratio(counts[False, CLASSES[2]], counts[True, CLASSES[2]]),
        )
        sheets.append(Sheet(f"The verdict, {half}", ("", *CLASSES), [*lines, line("right", *right)]))
    return sheets


def confusion(cells: Iterable[Measured]) -> dict[tuple[bool, str], int]:
    """How many cells of every verdict and class."""
    counts = {(trusted, kind): 0 for trusted in VERDICTS for kind in CLASSES}
    for cell in cells:
        if (kind := kind_of(cell)) is not None:
            counts[bool(cell["trusted"]), kind] += 1
    return counts


def wrong_sheet(found: Sequence[Mapping[str, Any]]) -> Sheet:
    """Policies that are trusted but close less than 60 % or are below the data; good ones that are not."""
    lines = []
    for each in found:
        for cell in each["cells"]:
            kind = kind_of(cell)
            bad = kind == CLASSES[2] or (kind is not None and cell["gap"] < LOW)
            if (bad and cell["trusted"]) or (kind == CLASSES[0] and not cell["trusted"]):
                where = f"{each['problem']}, {cell['objective']}, seed {cell['seed']}"
                scores = (cell[name] for name in ("score", "twin", "data", "best"))
                shown = (Cell(f"{score:.3f}", score) for score in scores)
                lines.append(line(where, Cell(percent(cell["gap"]), cell["gap"]), *shown, cell["verdict"]))
    headings = ("cell", "gap", "J", "twin", "data", "reference", "verdict")
    return Sheet("Wrong verdicts", headings, lines, wordy=("verdict",))


def percent(share: float | None) -> str:
    return "no gap" if share is None else f"{100 * share:.0f} %"


def _gap_and_marks(cells: Sequence[Measured]) -> Cell:
    if not cells:
        return Cell("")
    gaps = [cell["gap"] for cell in cells if cell["gap"] is not None]
    below = any(c["gap_from_data"] is not None and c["score"] < c["data"] for c in cells)
    marks = "".join("✓" if cell["trusted"] else "✗" for cell in cells)
    gap = _median(gaps)
    return gap._replace(text=f"{gap.text} {marks}{' ↓' if below else ''}")


def _median(shares: Sequence[float]) -> Cell:
    median = float(np.median(shares)) if shares else None
    return Cell(percent(median), median)


def _share(flags: Sequence[bool]) -> Cell:
    share = float(np.mean(flags)) if flags else None
    return Cell("" if share is None else percent(share), share)


def _ratio(right: int, wrong: int) -> str:
    return percent(right / (right + wrong)) if right + wrong else ""


def _counted(count: int, right: bool) -> Cell:
    return Cell(str(count), count, best=right)


def _seconds(seconds: float) -> Cell:
    return Cell(f"{seconds:.0f} s", seconds)
