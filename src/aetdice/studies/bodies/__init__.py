"""The D4MORL bodies as in the paper: convex F on Ant and Walker2d, Cobb-Douglas with and without safety."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.text import Text

from aetdice.files import write_text
from aetdice.studies.bodies.figures import figures
from aetdice.studies.bodies.markdown import markdown
from aetdice.studies.bodies.merge import merge
from aetdice.studies.bodies.parts import parts_of
from aetdice.studies.bodies.plan import PLANS, Plan
from aetdice.studies.bodies.tables import tables
from aetdice.studies.parts import write_summary

__all__ = ["PLANS", "Plan", "merge", "parts_of", "report"]


def report(results: Mapping[str, Mapping[str, Any]], plan: Plan, folder: Path) -> Group:
    """Write figures with their data, and the tables as Markdown, to the folder; return the tables."""
    shown, scenes = [], {}
    for scene in plan.scenes:
        merged = scenes[scene.name] = merge(results, scene, plan.horizon)
        figures(merged, scene, plan.horizon, folder)
        shown += [part for table in tables(merged) for part in (table, Text())]
    write_summary(folder, {"scenes": scenes})
    write_text(folder / "tables.md", "\n\n".join(markdown(m) for m in scenes.values() if m["rows"]) + "\n")
    return Group(*shown, f"figures and their data: {folder}")
