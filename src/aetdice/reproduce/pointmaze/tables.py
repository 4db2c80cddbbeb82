"""Tables of the MO-PointMaze study, from its merged results."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from aetdice.report.tables import columns
from aetdice.reproduce.pointmaze.estimates import Estimate, leaders
from aetdice.reproduce.pointmaze.merge import CLONING, column_of
from aetdice.reproduce.pointmaze.paper import COLUMNS

BEST = "bold green"


def tables(merged: Mapping[str, Any]) -> list[RenderableType]:
    """Everything that has results."""
    rows = merged["rows"]
    shown: list[RenderableType] = []
    if merged["reference"]:
        shown.append(schedules(merged["reference"]))
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
        table.add_row(
            Text(name),
            words_of(chosen["params"]),
            _number(chosen["scores"]["trained"]["mean"]),
            *(_number(chosen.get(key)) for key in ("claimed_value", "held_out_claimed_value", "twin")),
            *(_number(value) for value in (row["data_score"], chosen["schedule"])),
            _shares(chosen["gap_shares"]),
            words_of(best["params"]),
            _shares(best["gap_shares"]),
        )
    return table


def words_of(params: Mapping[str, Any]) -> str:
    """A setting in short."""
    names = {"beta": "β", "expectile": "τ", "temperature": "T"}
    return " ".join(f"{names[name]} {value:g}" for name, value in params.items() if name in names)


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
            "" if beta is None else f"{beta / horizon:.1e}",
            f"{trained.mean:.2f} ± {trained.half:.2f}",
            *(_number(setting.get(key)) for key in ("claimed_value", "flow_violation")),
            "" if "effective_sample_size" not in setting else f"{setting['effective_sample_size']:.1%}",
            _shares(setting["gap_shares"]),
        )
    return table


def schedules(reference: Mapping[str, Any]) -> Table:
    """The best mixture of schedules for every objective."""
    table = columns(
        f"best of {reference['driven']:,} schedules, or mixtures of them", "for", "value", "schedules"
    )
    for name, found in reference["schedules"].items():
        lines = [
            f"{part['probability']:.0%} {route(part)} → ({', '.join(f'{r:.4g}' for r in part['returns'])})"
            for part in found["mixture"]
        ]
        table.add_row(Text(name), f"{found['value']:.3f}", Text("\n".join(lines)))
    table.columns[2].justify = "left"
    return table


def route(part: Mapping[str, Any]) -> str:
    """A schedule in words, legs of no length left out."""
    words = [part["goals"][0]]
    for goal, time in zip(part["goals"][1:], part["switch_times"], strict=True):
        words = [goal] if time == 0 else [*words, f"at {time} {goal}"]
    return ", ".join(words)


def endowed(found: Mapping[str, Any]) -> Table:
    """How a policy trained for ESR from nothing does when something has accrued already."""
    table = columns(
        "ESR of episodes that begin with reward accrued",
        "accrued at the start",
        "learner",
        "not told",
        "twin",
        "best schedule",
        "gap closed",
        "gains",
        "best schedule's",
    )
    for case in found["cases"]:
        learner, untold, twin = (
            float(np.mean([seed[key] for seed in case["seeds"]])) for key in ("score", "untold", "twin")
        )
        gains = np.mean([seed["gains"] for seed in case["seeds"]], axis=0)
        table.add_row(
            _vector(case["endowment"]),
            *(f"{value:.2f}" for value in (learner, untold, twin, case["best"])),
            f"{(learner - twin) / (case['best'] - twin):.0%}",
            _vector(gains),
            _vector(case["best_gains"]),
        )
    return table


def goal_gaps(part: Mapping[str, Any]) -> dict[str, list[float]]:
    """The share of the gap that each seed closes, by objective."""
    return {
        name: [
            (seed["scores"]["trained"]["value"] - seed["twin"]) / (part["best"][name] - seed["twin"])
            for seed in row["settings"][row["selected"]]["seeds"]
        ]
        for name, row in part["rows"].items()
    }


def goals(parts: Mapping[str, Any]) -> Table:
    """Gap closed against the number of objectives, on a star with one goal per arm."""
    names = list(next(iter(parts.values()))["rows"])
    table = columns("quality against the number of objectives: gap closed on a star of m arms", "m", *names)
    for m, part in parts.items():
        shares = goal_gaps(part)
        table.add_row(m, *(_shares(shares[name]) for name in names))
    return table


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _shares(shares: list[float] | None) -> str:
    if shares is None:
        return ""
    each = f" ({', '.join(f'{share:.0%}' for share in shares)})" if len(shares) > 1 else ""
    return f"{np.mean(shares):.0%}{each}"


def _vector(values: Any) -> str:
    return f"({', '.join(f'{value:.4g}' for value in values)})"
