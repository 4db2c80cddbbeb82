"""A study's results as a reader sees them: tables, Markdown, figures and `summary.json`."""

from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from aetdice.files import write_text
from aetdice.studies.merging import merge
from aetdice.studies.parts import Results, write_summary
from aetdice.studies.score_tables import markdown, tables_of
from aetdice.studies.study import Study


def report(study: Study, results: Results, folder: Path) -> Group:
    """Write the summary, figures with their data, and Markdown to the folder; return the tables."""
    merged = merge(study, results)
    write_summary(folder, merged)
    shown: list[RenderableType] = []
    for table in study.tables:
        summary = merged["tables"][table.name]
        shown += [*table.tables(summary), *tables_of(summary)]
        table.figures(summary, folder)
    study.figures(merged["tables"], folder)
    shown += [probe.show(results[probe.part.name]) for probe in study.probes if probe.part.name in results]
    overview = study.overview(results)
    shown += overview.tables
    documented = [markdown(summary) for summary in merged["tables"].values() if summary["rows"]]
    documented += overview.markdown
    write_text(folder / "tables.md", "\n\n".join(documented) + "\n")
    spaced = [part for table in shown for part in (table, Text())]
    return Group(*spaced, f"figures and their data: {folder}")
