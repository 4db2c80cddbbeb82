"""A run that is under way, in a terminal: stages as bars, metrics as small curves."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rich.console import Group
from rich.table import Table
from rich.text import Text

from aetdice.report.progress import duration

BLOCKS = "▁▂▃▄▅▆▇█"
WIDTH = 32
"""Characters of a curve, and of a bar."""


def sparkline(values: Sequence[float], width: int = WIDTH) -> str:
    """A curve in one line of characters, from its lowest block to its highest."""
    points = np.asarray(values, float)
    if len(points) > width:
        points = np.array([part.mean() for part in np.array_split(points, width)])
    low, high = points.min(), points.max()
    level = np.zeros(len(points)) if high <= low else (points - low) / (high - low)
    return "".join(BLOCKS[round(each * (len(BLOCKS) - 1))] for each in level.tolist())


def state_page(state: Mapping[str, Any]) -> Group:
    """What `RunState.record` has, as a page."""
    names = state["objectives"]
    trained = names[0] if len(names) == 1 else f"{len(names)} objectives, from {names[0]} to {names[-1]}"
    head = Text.assemble((state["folder"], "bold"), f"  {state['algorithm']}, {trained}")
    parts: list[Any] = [head, _stages(state)]
    if state["curves"] and not state["ended"]:
        parts.append(_curves(state["curves"]))
    if state["ended"]:
        parts.append(_result(state["result"]))
    if state["cut"]:
        parts.append(
            f"nothing new for {duration(state['silent'])}; if its process is gone: "
            f"aetdice resume {state['folder']}"
        )
    return Group(*parts)


def state_line(state: Mapping[str, Any]) -> str:
    """The same in one line, for files."""
    if state["ended"]:
        return f"{state['folder']}: ended"
    if state["stage"] is None:
        return f"{state['folder']}: begun"
    total = state["totals"].get(state["stage"])
    of = "" if total is None else f" of {total:,}"
    left = "" if state["left"] is None else f", {duration(state['left'])} left in it"
    return f"{state['folder']}: {state['stage']} {state['step']:,}{of}{left}"


def _stages(state: Mapping[str, Any]) -> Table:
    table = Table.grid(padding=(0, 2))
    for name, total in (state["totals"] or dict.fromkeys(state["steps"], 0)).items():
        done = total if state["ended"] and total else state["steps"].get(name, 0)
        filled = round(WIDTH * min(1.0, done / total)) if total else 0
        bar = "█" * filled + "░" * (WIDTH - filled) if total else ""
        left = ""
        if name == state["stage"] and state["left"] and not state["ended"]:
            left = f"{duration(state['left'])} left"
        table.add_row(Text(name, style="bold"), bar, f"{done:,} of {total:,}" if total else f"{done:,}", left)
    return table


def _curves(curves: Sequence[Mapping[str, Any]]) -> Table:
    table = Table.grid(padding=(0, 2))
    for curve in curves:
        spread = "" if curve["low"] == curve["high"] else f"{curve['low']:.4g} to {curve['high']:.4g}"
        name = curve["name"].replace("_", " ")
        table.add_row(
            Text(name, style="bold"), sparkline(curve["values"]), f"{curve['values'][-1]:.4g}", spread
        )
    return table


def _result(result: Mapping[str, Any]) -> Table:
    table = Table.grid(padding=(0, 2))
    for one in result["by_objective"]:
        table.add_row(Text("objective", style="bold"), Text(one["objective"]))
        if one["score"] is not None:
            scores = f"{one['score']:.4f} (cloning twin {one['twin_score']:.4f})"
            table.add_row(Text("score", style="bold"), scores)
        trust = "trusted" if one["trusted"] else "not trusted"
        table.add_row(Text("verdict", style="bold"), Text(f"{trust}: {one['verdict']}"))
    table.add_row(Text("time", style="bold"), duration(result["seconds"]))
    return table
