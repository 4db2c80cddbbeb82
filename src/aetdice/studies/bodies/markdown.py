"""The tables of scores as Markdown, for documents."""

from collections.abc import Mapping
from typing import Any

from aetdice.studies.bodies.measure import BEHAVIOURS
from aetdice.studies.bodies.tables import ranked, spread


def markdown(merged: Mapping[str, Any]) -> str:
    """One scene: the best of a column bold, the paper's in brackets; last, who stays up or where Ants go."""
    headings, rows = merged["columns"], merged["rows"]
    going = any(row["shares"] for row in rows.values())
    best = {heading: ranked(merged, heading)[0] for heading in headings}
    last = ", ".join(BEHAVIOURS) if going else "stay up"
    lines = [[merged["title"], *headings, last], ["---"] * (2 + len(headings))]
    for name, row in rows.items():
        cells = (_cell(row, heading, best[heading] == name) for heading in headings)
        lines.append([name, *cells, _shares(row["shares"]) if going else f"{row['upright']['mean']:.0%}"])
    for name, reference in merged["references"].items():
        values = (_alone(reference["scores"][heading]["value"]) for heading in headings)
        lines.append([name, *values, "" if going else f"{reference['upright']:.0%}"])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(row: Mapping[str, Any], heading: str, best: bool) -> str:
    own, printed = spread(row["scores"][heading]), row["paper"].get(heading)
    return (f"**{own}**" if best else own) + ("" if printed is None else f" ({_alone(printed[0])})")


def _alone(value: float) -> str:
    return spread({"mean": value, "sd": None})


def _shares(shares: Mapping[str, float]) -> str:
    return ", ".join(f"{shares[name]:.0%}" for name in BEHAVIOURS)
