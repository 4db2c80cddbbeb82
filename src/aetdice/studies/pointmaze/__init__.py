"""MO-PointMaze as in the paper: every row of its table, the β ablation, scatters, quantiles, coverage."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.text import Text

from aetdice.studies.parts import write_summary
from aetdice.studies.pointmaze.figures import figures
from aetdice.studies.pointmaze.merge import merge
from aetdice.studies.pointmaze.parts import parts_of
from aetdice.studies.pointmaze.plan import PLANS
from aetdice.studies.pointmaze.tables import tables

__all__ = ["PLANS", "merge", "parts_of", "report"]


def report(results: Mapping[str, Mapping[str, Any]], maze: str, folder: Path) -> Group:
    """Write figures with their data to the folder, and return the tables."""
    merged = merge(results, maze)
    write_summary(folder, merged)
    figures(merged, folder)
    spaced = [part for table in tables(merged) for part in (table, Text())]
    return Group(*spaced, f"figures and their data: {folder}")
