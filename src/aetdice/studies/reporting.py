"""A study's results as a reader sees them: tables, Markdown, figures and `summary.json`."""

from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from aetdice.files import write_text
from aetdice.report import sheets
from aetdice.report.sheets import Sheet
from aetdice.studies.merging import merge
from aetdice.studies.parts import Results, made_in, write_summary
from aetdice.studies.populations import parts_of
from aetdice.studies.score_tables import markdown, sheets_of
from aetdice.studies.study import Study, Summary, Table


def report(study: Study, results: Results, folder: Path) -> Group:
    """Write the summary, figures with their data, and Markdown to the folder; return the tables."""
    merged = merge(study, results)
    write_summary(folder, merged)
    shown: list[RenderableType] = []
    for table in study.tables:
        summary = merged["tables"][table.name]
        shown += map(sheets.drawn, table_sheets(table, summary))
        table.figures(summary, folder)
    study.figures(merged["tables"], folder)
    overview = study.overview(results)
    shown += map(sheets.drawn, [*probe_sheets(study, results), *overview.sheets])
    shown += map(Text, overview.notes)
    documented = [markdown(summary) for summary in merged["tables"].values() if summary["rows"]]
    documented += [*map(sheets.markdown, overview.sheets), *overview.notes]
    write_text(folder / "tables.md", "\n\n".join(documented) + "\n")
    spaced = [part for table in shown for part in (table, Text())]
    return Group(*spaced, f"figures and their data: {folder}")


def table_sheets(table: Table, summary: Summary) -> list[Sheet]:
    """Scores first, and last what only this table has."""
    return [*sheets_of(summary), *table.sheets(summary)]


def probe_sheets(study: Study, results: Results) -> list[Sheet]:
    """Of the probes that are done."""
    return [probe.show(results[probe.part.name]) for probe in study.probes if probe.part.name in results]


def told(study: Study, results: Results, folder: Path) -> dict[str, Any]:
    """All that a page tells of a study, as JSON has it."""
    merged, overview = merge(study, results), study.overview(results)
    tables = ((table, merged["tables"][table.name]) for table in study.tables)
    return {
        "study": study.name,
        "asks": study.asks,
        "answer": overview.answer,
        "parts": [part.name for part in parts_of(study)],
        "made": made_in(folder),
        "tables": [
            {**summary, "sheets": [sheet.record() for sheet in table_sheets(table, summary)]}
            for table, summary in tables
        ],
        "sheets": [sheet.record() for sheet in (*probe_sheets(study, results), *overview.sheets)],
        "notes": overview.notes,
    }
