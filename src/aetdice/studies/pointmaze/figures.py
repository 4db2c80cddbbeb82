"""Figures of the MO-PointMaze study, each drawn from a file that is saved beside it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from aetdice.files import write_json
from aetdice.report.figures import quantile_curves, return_distributions
from aetdice.report.return_figures import beta_curves, return_panels, share_lines
from aetdice.studies.pointmaze.coverage_tables import goal_gaps
from aetdice.studies.pointmaze.measure import LEVELS
from aetdice.studies.pointmaze.merge import STATE_ONLY, trained_for


def figures(merged: Mapping[str, Any], folder: Path) -> None:
    """Draw everything that has results."""
    maze, reference = merged["maze"], merged["reference"]
    if not reference:
        return
    data, objectives = reference["data"]["returns"], reference["objectives"]
    write_json(folder / "data.json", {"objectives": objectives, "returns": data})
    return_distributions(folder / "data.png", np.array(data), objectives, maze)
    shown = {name: chosen(row) for name, row in merged["rows"].items() if name != STATE_ONLY}
    if not shown:
        return
    marks = {
        name: reference["schedules"][trained_for(name)]["mixture"]
        for name in shown
        if trained_for(name) in reference["schedules"]
    }
    episodes = {name: setting["returns"] for name, setting in shown.items()}
    write_json(folder / "returns.json", {"episodes": episodes, "schedules": marks})
    words = f"{maze}: returns of episodes (blue or shaded), of the data (grey), of the best schedules (stars)"
    return_panels(folder / "returns.png", episodes, data, marks, objectives, words)
    curves = {name: s["quantiles"] for name, s in shown.items() if not trained_for(name).startswith("[")}
    write_json(folder / "quantiles.json", {"levels": LEVELS.tolist(), "curves": curves})
    title = f"{maze}: returns over episodes, by objective"
    quantile_curves(folder / "quantiles.png", LEVELS.tolist(), curves, objectives, title)
    ablation(merged, folder)
    if merged["goals"]:
        gaps = {m: goal_gaps(part) for m, part in merged["goals"].items()}
        names = list(next(iter(gaps.values())))
        lines = {name: {m: gaps[m][name] for m in gaps} for name in names}
        write_json(folder / "goals.json", lines)
        share_lines(folder / "goals.png", lines, "Stars with one goal per arm", "number of objectives m")


def ablation(merged: Mapping[str, Any], folder: Path) -> None:
    """J against β for AETDICE's nonlinear rows."""
    curves = {}
    for name, row in merged["rows"].items():
        if not name.startswith("AETDICE ") or trained_for(name).startswith("[") or len(row["settings"]) < 2:
            continue
        settings = row["settings"]
        curves[name] = {
            "beta": [s["params"]["beta"] for s in settings],
            "score": [s["scores"]["trained"]["mean"] for s in settings],
            "half": [s["scores"]["trained"]["half"] for s in settings],
            "claimed": [s["claimed_value"] for s in settings],
            "twin": settings[0]["twin"],
            "schedule": settings[0]["schedule"],
            "selected": row["selected"],
        }
    if curves:
        write_json(folder / "betas.json", {"horizon": merged["horizon"], "curves": curves})
        beta_curves(folder / "betas.png", curves, merged["horizon"], f"{merged['maze']}: J against β")


def chosen(row: Mapping[str, Any]) -> Any:
    """The setting that the rule took."""
    return row["settings"][row["selected"]]
