"""Tables of the coverage studies."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from rich.table import Table

from aetdice.report.tables import columns
from aetdice.studies.pointmaze.words import shares_of, vector


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
            vector(case["endowment"]),
            *(f"{value:.2f}" for value in (learner, untold, twin, case["best"])),
            f"{(learner - twin) / (case['best'] - twin):.0%}",
            vector(gains),
            vector(case["best_gains"]),
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
        table.add_row(m, *(shares_of(shares[name]) for name in names))
    return table
