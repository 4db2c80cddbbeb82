"""`write_study_report`: a study of the paper as one HTML file, from what its parts have found."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aetdice.errors import InputError
from aetdice.files import package_version, write_text
from aetdice.page.document import Layout, document
from aetdice.page.study_table import explored, samples_of
from aetdice.report.sheets import Cell, Sheet, line

LARGEST = 1_500_000
"""Bytes of all pictures together."""
DAMAGED = (LookupError, TypeError, ValueError, AttributeError)
"""What plain data raise where they are not those of a study."""


def write_study_report(
    told: Mapping[str, Any],
    path: Path | str,
    *,
    figures: Iterable[Path] = (),
    command: str | None = None,
) -> Path:
    """Write what `aetdice.studies.reporting.told` says of a study as one page; figures are PNG files."""
    try:
        record = record_of(told, figures, command)
    except DAMAGED as error:
        raise InputError(f"this is no study that can be shown: {error}") from error
    write_text(Path(path), document(record["title"], record, layout_of(record)))
    return Path(path)


def layout_of(record: Mapping[str, Any]) -> Layout:
    """A section for every table that has something to show."""
    tables = {f"table-{i}": table["title"] for i, table in enumerate(record["tables"])}
    sections = {
        "asked": "What the study asks",
        **tables,
        "more": "Beside the tables" if tables else "Results",
    }
    sections |= {"figures": "Figures", "provenance": "Where this comes from"}
    return Layout(sections, "study.js")


def record_of(
    told: Mapping[str, Any], figures: Iterable[Path] = (), command: str | None = None
) -> dict[str, Any]:
    """All that the page shows, as JSON has it."""
    tables = [table for table in told["tables"] if table["sheets"]]
    samples = samples_of(tables)
    done, missing = told["made"], [name for name in told["parts"] if name not in told["made"]]
    return {
        "title": f"The study {told['study']}",
        "names": "a study",
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "version": package_version("aetdice"),
        "complete": not missing,
        "answer": answer(told, tables, missing),
        "asks": told["asks"],
        "about": [["parts that are missing", ", ".join(missing)]] if missing and done else [],
        "tables": [explored(table, samples) for table in tables],
        "samples": samples.shown,
        "sheets": told["sheets"],
        "notes": told["notes"],
        "figures": list(pictures(figures)),
        "shared": shared(done),
        "provenance": provenance(done).record(),
        "command": command,
    }


def answer(told: Mapping[str, Any], tables: Sequence[Mapping[str, Any]], missing: Sequence[str]) -> str:
    """How many columns are won by a row that was trained for them, and how much of the study is done."""
    words = [told["answer"]] if told["answer"] else []
    won = [win for table in tables for win in wins(table)]
    if won:
        columns = f"{sum(won)} of {len(won)} columns"
        words.append(f"In {columns} a row that was trained for the column is the best, or tied with it.")
    if missing:
        count = len(told["parts"])
        words.append(f"{count - len(missing)} of {count} parts are done; the page shows those.")
    return " ".join(words)


def wins(table: Mapping[str, Any]) -> list[bool]:
    """For each column that some row was trained for, where there is another: whether such a row is best."""
    scores = next((sheet for sheet in table["sheets"] if sheet["headings"][0] == "method"), None)
    if scores is None or len(table["rows"]) < 2:
        return []
    lines = [each["cells"][1:] for each in scores["lines"] if not each["faint"]]
    columns = [column for column in zip(*lines, strict=True) if any(cell["own"] for cell in column)]
    return [any(cell["own"] and cell["best"] for cell in column) for column in columns]


def made_with(part: Mapping[str, Any]) -> dict[str, str]:
    """What is often the same for all parts."""
    return {
        "commit": part["commit"] or "not known",
        "device": part["device"],
        "versions": ", ".join(f"{package} {version}" for package, version in part["versions"].items()),
    }


def shared(made: Mapping[str, Mapping[str, Any]]) -> list[list[str]]:
    """Of that, what is the same for all."""
    found: dict[str, set[str]] = {}
    for part in made.values():
        for name, words in made_with(part).items():
            found.setdefault(name, set()).add(words)
    return [[name, *several] for name, several in found.items() if len(several) == 1]


def provenance(made: Mapping[str, Mapping[str, Any]]) -> Sheet:
    """How every part was made, as far as they differ."""
    same = {name for name, _ in shared(made)}
    lines = []
    for name, part in made.items():
        own = {heading: words for heading, words in made_with(part).items() if heading not in same}
        seconds = part["seconds"]
        took = Cell("not known" if seconds is None else f"{seconds:,.0f} s", seconds)
        lines.append(line(name, part["date"], took, *own.values()))
    headings = [each for each in ("commit", "device", "versions") if each not in same]
    return Sheet("The parts", ("part", "date", "time", *headings), lines)


def pictures(figures: Iterable[Path]) -> Iterable[dict[str, str | None]]:
    """Each as it stands in the page; what there is no room for is named only."""
    room = LARGEST
    for path in figures:
        size = path.stat().st_size
        fits = size <= room
        room -= size if fits else 0
        content = f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}" if fits else None
        yield {"name": path.name, "data": content}
