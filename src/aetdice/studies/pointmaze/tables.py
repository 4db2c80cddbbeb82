"""Tables of the MO-PointMaze study, from its merged results."""

from collections.abc import Mapping
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from aetdice.report.tables import columns
from aetdice.studies.estimates import Estimate, leaders
from aetdice.studies.pointmaze.coverage_tables import endowed, goals
from aetdice.studies.pointmaze.merge import CLONING, column_of
from aetdice.studies.pointmaze.paper import COLUMNS
from aetdice.studies.pointmaze.words import route, shares_of, vector
from aetdice.studies.words import number, words_of

BEST = "bold green"
CLAIMS = ("claimed_value", "held_out_claimed_value")
"""What ratios say of J; those of a discounted flow speak of the discounted return, another quantity."""


def tables(merged: Mapping[str, Any]) -> list[RenderableType]:
    """Everything that has results."""
    rows = merged["rows"]
    shown: list[RenderableType] = []
    if merged["reference"]:
        shown.append(schedules(merged["reference"], merged["horizon"]))
    if rows:
        rule = "settings chosen without the environment"
        shown += [scores(merged, "selected", rule), verdict(rows, "selected")]
        looked = "settings chosen by looking at the environment, for comparison"
        shown += [scores(merged, "best", looked), verdict(rows, "best")]
        shown.append(gaps(rows))
    ablated = {name: row for name, row in rows.items() if len(row["settings"]) > 1}
    shown += [settings(name, row, merged["horizon"]) for name, row in ablated.items()]
    if merged["endowed"]:
        shown.append(endowed(merged["endowed"]))
    if merged["goals"]:
        shown.append(goals(merged["goals"]))
    return shown


def entries(rows: Mapping[str, Any], choice: str) -> dict[str, dict[str, Estimate]]:
    """Column by column the estimate of every row."""
    return {
        heading: {
            name: Estimate.read(row["settings"][row[choice]]["scores"][column]) for name, row in rows.items()
        }
        for heading, column in COLUMNS.items()
    }


def scores(merged: Mapping[str, Any], choice: str, title: str) -> Table:
    """Trained for (rows) × evaluated under (columns), with 95 % intervals; the paper's in brackets."""
    rows = merged["rows"]
    table = columns(f"{merged['maze']}, {title} (the paper's, on its own layout)", "method", *COLUMNS)
    found = entries(rows, choice)
    best = {heading: leaders(column) for heading, column in found.items()}
    for name, row in rows.items():
        cells = []
        for i, (heading, column) in enumerate(found.items()):
            digits = 1 if heading == "LSR" else 2
            cell = Text(f"{column[name].mean:.{digits}f} ± {column[name].half:.{digits}f}")
            cell.stylize(BEST if name in best[heading] else "")
            if row["paper"]:
                cell.append(f" ({row['paper'][i][0]:.{digits}f})", style="dim")
            cells.append(cell)
        table.add_row(Text(name), *cells)
    for name, found_best in merged["reference"].get("schedules", {}).items():
        if name in COLUMNS.values():
            values = (found_best["scores"][column] for column in COLUMNS.values())
            table.add_row(
                f"best schedules for {name.split('[')[0]}", *(f"{v:.2f}" for v in values), style="dim"
            )
    return table


def verdict(rows: Mapping[str, Any], choice: str) -> Text:
    """Is, in every column, a row that was trained for it best or tied?"""
    text = Text()
    for heading, column in entries(rows, choice).items():
        own = [name for name in column if CLONING not in name and column_of(name) == heading]
        winners = [name for name in own if name in leaders(column)]
        words = f"best or tied: {', '.join(winners)}" if winners else "NOT won by a row trained for it"
        text.append(f"{heading}: {words}\n", style="" if winners else "bold red")
    text.append("bold: best or tied; intervals are 95 %, over seeds and episodes", style="dim")
    return text


def gaps(rows: Mapping[str, Any]) -> Table:
    """How much of the way from the twin to the best schedules is closed, and what the ratios claim."""
    table = columns(
        "gap closed; where the ratios claim more than the score, policy extraction is the gap",
        "method",
        "setting",
        "score",
        "claimed",
        "held out",
        "twin",
        "data",
        "schedules",
        "gap closed",
        "best setting",
        "its gap",
    )
    for name, row in rows.items():
        if CLONING in name:
            continue
        chosen, best = (row["settings"][row[choice]] for choice in ("selected", "best"))
        finite = name.startswith("AETDICE")
        table.add_row(
            Text(name),
            words_of(chosen["params"]),
            number(chosen["scores"]["trained"]["mean"]),
            *(number(chosen.get(key)) if finite else "" for key in CLAIMS),
            number(chosen["twin"]),
            *(number(value) for value in (row["data_score"], chosen["schedule"])),
            shares_of(chosen["gap_shares"]),
            words_of(best["params"]),
            shares_of(best["gap_shares"]),
        )
    return table


def settings(name: str, row: Mapping[str, Any], horizon: int) -> Table:
    """Every setting of a row: its score, what it claims, and how it was chosen."""
    table = columns(
        f"{name}: every setting",
        "setting",
        "paper's β",
        "score",
        "claimed",
        "flow",
        "sample size",
        "gap closed",
    )
    for i, setting in enumerate(row["settings"]):
        trained = Estimate.read(setting["scores"]["trained"])
        beta = setting["params"].get("beta")
        marks = [word for word, at in (("chosen", row["selected"]), ("best", row["best"])) if at == i]
        table.add_row(
            f"{words_of(setting['params'])}{' ← ' if marks else ''}{', '.join(marks)}",
            f"{beta / horizon:.1e}" if beta and name.startswith("AETDICE") else "",
            f"{trained.mean:.2f} ± {trained.half:.2f}",
            *(number(setting.get(key)) for key in ("claimed_value", "flow_violation")),
            "" if "effective_sample_size" not in setting else f"{setting['effective_sample_size']:.1%}",
            shares_of(setting["gap_shares"]),
        )
    return table


def schedules(reference: Mapping[str, Any], horizon: int) -> Table:
    """The best mixture of schedules for every objective."""
    table = columns(
        f"best of {reference['driven']:,} schedules, or mixtures of them", "for", "value", "schedules"
    )
    for name, found in reference["schedules"].items():
        lines = [
            f"{part['probability']:.0%} {route(part, horizon)} → {vector(part['returns'])}"
            for part in found["mixture"]
        ]
        table.add_row(Text(name), f"{found['value']:.3f}", Text("\n".join(lines)))
    table.columns[2].justify = "left"
    return table
