"""Sweeps as terminal tables: the jobs of a plan, and the settings that were selected."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rich.console import Group
from rich.table import Table
from rich.text import Text

from aetdice.report.fitting import FittingTable

Row = Mapping[str, Any]
VALUES = ("beta", "expectile", "temperature", "sample_size", "learning_rate")
MEASURED = {"score": "score", "twin_score": "twin", "estimate": "estimate"}
"""Columns of numbers, shown where any row has one, and their headings."""
USUAL = {"learning_rate": 1e-3}
"""What needs no mention."""


def sweep_table(selected: Sequence[Row], written: str) -> Group:
    """Of every dataset, objective and algorithm the selected setting: means over its seeds."""
    table = FittingTable(title="selected, offline", title_justify="left", title_style="bold")
    measured = [name for name in MEASURED if any(row.get(name) is not None for row in selected)]
    names = (MEASURED[name] for name in measured)
    for i, name in enumerate(("dataset", "objective", "algorithm", "setting", *names, "trusted")):
        table.add_column(name, justify="right" if i > 3 else "left")
    for rows in _together(selected):
        means = [_mean(rows, name) for name in measured]
        trusted = f"{sum(row['trusted'] for row in rows)} of {len(rows)}"
        first = rows[0]
        facts = (first["dataset"], first["objective"], first["algorithm"], _setting(first))
        table.add_row(*map(Text, facts), *means, trusted)
    return Group(table, Text(written))


def jobs_table(jobs: Sequence[Any]) -> Table:
    """Every job with what it trains."""
    table = FittingTable(title="jobs", title_justify="left", title_style="bold")
    for name in ("job", "dataset", "algorithm", "objectives", "varied", "members", "MiB"):
        table.add_column(name, justify="right" if name in ("members", "MiB") else "left")
    for job in jobs:
        objectives = ", ".join(each["name"].partition(":")[0] for each in job.objectives)
        several = {**job.values, **{name: [value] for name, value in job.varied.items()}}
        varied = ", ".join(f"{name} {' '.join(map(_shown, values))}" for name, values in several.items())
        size = f"{job.memory / (1 << 20):.0f}"
        facts = (job.id, job.dataset, job.algorithm, objectives, varied, str(job.members), size)
        table.add_row(*map(Text, facts))
    return table


def _together(rows: Sequence[Row]) -> list[list[Row]]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["dataset"], row["definition"], row["algorithm"]), []).append(row)
    return list(groups.values())


def _mean(rows: Sequence[Row], name: str) -> str:
    """With the standard deviation over seeds."""
    values = [row[name] for row in rows if row.get(name) is not None]
    if not values:
        return ""
    spread = f" ± {np.std(values, ddof=1):.3f}" if len(values) > 1 else ""
    return f"{np.mean(values):.4f}{spread}"


def _setting(row: Row) -> str:
    known = {name: row[name] for name in VALUES if row.get(name) not in (None, USUAL.get(name))}
    return ", ".join(f"{name} {_shown(value)}" for name, value in {**known, **row["settings"]}.items())


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "×".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
