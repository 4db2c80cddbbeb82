"""Tables and figures of the Fair-Taxi study, from its merged results."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group
from rich.table import Table
from rich.text import Text

from aetdice.files import write_json
from aetdice.report.figures import quantile_curves, share_bars
from aetdice.report.tables import columns
from aetdice.studies.fair_taxi import BEHAVIOURS, LEVELS, PAPER
from aetdice.studies.parts import write_summary

COLUMNS = {"ESR": "ESR", "BSR 0.5": "BSR[alpha=0.5]", "SER": "SER"}
"""Headings, and what the scores are called in results."""
NAMES = {"0": "ESR", "1": "SER"}
OBJECTIVES = ("group 0", "group 1")


def report(merged: Mapping[str, Mapping[str, Any]], folder: Path) -> Group:
    """Write figures with their data to the folder, and return the tables."""
    dense = merged["dense"]
    write_summary(folder, merged)
    if dense:
        shares = {
            alpha: {"learner": mean_shares(row), "exact": row["exact_shares"]} for alpha, row in dense.items()
        }
        write_json(folder / "behaviours.json", shares)
        share_bars(folder / "behaviours.png", shares, "Whom the taxi serves within an episode", "BSR's α")
        curves = {
            name_of(alpha): np.mean([seed["quantiles"] for seed in row["seeds"]], axis=0).tolist()
            for alpha, row in dense.items()
        }
        write_json(folder / "quantiles.json", {"levels": LEVELS.tolist(), "curves": curves})
        quantile_curves(
            folder / "quantiles.png",
            LEVELS.tolist(),
            curves,
            OBJECTIVES,
            "Returns over episodes, by objective",
        )
    tables = [gaps(dense, "rewards along the way")]
    if merged["terminal"]:
        tables.append(gaps(merged["terminal"], "the same, reward at the end of the episode only"))
    tables += [cross(dense), behaviours(dense), history(dense), spreads(dense)]
    spaced = [part for table in tables for part in (table, Text())]
    return Group(*spaced, f"figures and their data: {folder}")


def name_of(alpha: str) -> str:
    return NAMES.get(alpha, f"BSR {alpha}")


def mean_shares(row: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(np.mean([seed["shares"][name] for seed in row["seeds"]])) for name in BEHAVIOURS}


def gaps(rows: Mapping[str, Any], title: str) -> Table:
    """How much of the way from the twin to the exact optimum is closed, seed by seed."""
    table = columns(
        f"Fair-Taxi, {title}: gap closed",
        "trained for",
        "β",
        "learner",
        "twin",
        "data",
        "exact",
        "gap closed",
    )
    for alpha, row in rows.items():
        scores = [member["score"] for member in row["members"]]
        shares = [
            (member["score"] - member["twin_score"]) / (row["exact_score"] - member["twin_score"])
            for member in row["members"]
        ]
        each = f" ({', '.join(f'{share:.1%}' for share in shares)})" if len(shares) > 1 else ""
        table.add_row(
            name_of(alpha),
            f"{row['selected']['params']['beta']:g}",
            f"{np.mean(scores):.3f}" + (f" ± {np.std(scores):.3f}" if len(scores) > 1 else ""),
            *(f"{row[key]:.3f}" for key in ("twin_score", "data_score", "exact_score")),
            f"{np.mean(shares):.1%}{each}",
        )
    return table


def cross(rows: Mapping[str, Any]) -> Table:
    """Trained for (rows) × evaluated under (columns), seed means, beside the paper's."""
    table = columns(
        "trained for × evaluated under (in brackets the paper's, on its own layout)", "trained for", *COLUMNS
    )
    means = {
        alpha: [
            np.mean([m["scores"][column]["value"] for m in row["members"]]) for column in COLUMNS.values()
        ]
        for alpha, row in rows.items()
    }
    best = np.max(list(means.values()), axis=0) if means else []
    for alpha, values in means.items():
        paper = PAPER.get(name_of(alpha))
        cells = [
            Text(
                f"{value:.3f}" + (f" ({paper[i]:.3f})" if paper else ""),
                style="bold green" if value >= best[i] else "",
            )
            for i, value in enumerate(values)
        ]
        table.add_row(name_of(alpha), *cells)
    return table


def behaviours(rows: Mapping[str, Any]) -> Table:
    """Shares of behaviours, and those of the exact optimum in brackets."""
    table = columns("shares of episodes (exact optimum)", "trained for", *BEHAVIOURS)
    for alpha, row in rows.items():
        learned = mean_shares(row)
        cells = [f"{learned[name]:.1%} ({row['exact_shares'][name]:.1%})" for name in BEHAVIOURS]
        table.add_row(name_of(alpha), *cells)
    return table


def history(rows: Mapping[str, Any]) -> Table:
    """The probe: half-way at group 0's destination, the share that goes on to serve group 1."""
    table = columns(
        "t = 25 at group 0's destination: who turns to group 1?",
        "trained for",
        "group 0 served 3 times",
        "never served",
    )
    for alpha, row in rows.items():
        cells = [
            f"{np.mean([seed['probe'][key] for seed in row['seeds']]):.1%}"
            for key in ("served 3", "served 0")
        ]
        table.add_row(name_of(alpha), *cells)
    return table


def spreads(rows: Mapping[str, Any]) -> Table:
    """Mean and variance of each group's return over episodes."""
    table = columns(
        "returns over episodes: mean and variance", "trained for", *OBJECTIVES, "sum of variances"
    )
    for alpha, row in rows.items():
        mean, variance = (
            np.mean([seed[key] for seed in row["seeds"]], axis=0) for key in ("mean", "variance")
        )
        cells = [f"{m:.2f} ({v:.2f})" for m, v in zip(mean, variance, strict=True)]
        table.add_row(name_of(alpha), *cells, f"{np.sum(variance):.2f}")
    return table
