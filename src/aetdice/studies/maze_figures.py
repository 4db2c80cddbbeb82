"""Figures of the mazes, each drawn from a file that is saved beside it."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from aetdice.files import write_json
from aetdice.report.figures import return_distributions
from aetdice.report.return_figures import beta_curves, return_panels, share_lines
from aetdice.studies.return_quantiles import draw_quantiles
from aetdice.studies.score_tables import setting
from aetdice.studies.study import Summary

LINEAR = "LSR"
STATE_ONLY = "cloning, state only"
EVERY = 3
"""Of the kept episodes, one of so many is drawn."""


def draw_maze(summary: Summary, folder: Path) -> None:
    """The data, the returns of every method, their quantiles, and J against β."""
    maze, references, objectives = summary["title"], summary["references"], summary["objectives"]
    if not references:
        return
    data = references["data"]["samples"]["returns"]
    write_json(folder / "data.json", {"objectives": objectives, "returns": data})
    return_distributions(folder / "data.png", np.array(data), objectives, maze)
    rows = {name: row for name, row in summary["rows"].items() if name != STATE_ONLY}
    if not rows:
        return
    marks = {n: references[row["optimum"]]["schedules"] for n, row in rows.items() if row["optimum"]}
    episodes = {name: setting(row)["samples"]["returns"][::EVERY] for name, row in rows.items()}
    write_json(folder / "returns.json", {"episodes": episodes, "schedules": marks})
    words = f"{maze}: returns of episodes (blue or shaded), of the data (grey), of the best schedules (stars)"
    return_panels(folder / "returns.png", episodes, data, marks, objectives, words)
    nonlinear = {name: row for name, row in rows.items() if row["column"] != LINEAR}
    draw_quantiles(nonlinear, objectives, folder, f"{maze}: returns over episodes, by objective")
    draw_ablation(summary, folder)


def draw_ablation(summary: Summary, folder: Path) -> None:
    """J against β for AETDICE's nonlinear rows."""
    curves = {}
    for name, row in summary["rows"].items():
        settings = row["settings"]
        swept = len(settings) > 1 and "beta" in settings[0]["params"]
        if row["algorithm"] == "aetdice" and row["column"] != LINEAR and swept:
            curves[name] = {
                "beta": [s["params"]["beta"] for s in settings],
                "score": [s["trained"]["mean"] for s in settings],
                "half": [s["trained"]["half"] for s in settings],
                "claimed": [s["diagnostics"]["claimed_value"] for s in settings],
                "twin": settings[0]["twin"],
                "schedule": summary["references"][row["optimum"]]["value"],
                "selected": row["selected"],
            }
    if curves:
        write_json(folder / "betas.json", {"horizon": summary["horizon"], "curves": curves})
        beta_curves(folder / "betas.png", curves, summary["horizon"], f"{summary['title']}: J against β")


def draw_stars(stars: Mapping[int, Summary], folder: Path) -> None:
    """The share of the gap that is closed against the number of objectives."""
    lines: dict[str, dict[str, list[float]]] = {}
    for arms, summary in stars.items():
        for name, row in summary["rows"].items():
            if setting(row).get("gap_shares"):
                lines.setdefault(name, {})[str(arms)] = setting(row)["gap_shares"]
    if lines:
        write_json(folder / "stars.json", lines)
        share_lines(folder / "stars.png", lines, "Stars with one goal per arm", "number of objectives m")
