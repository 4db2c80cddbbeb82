"""Figures of the studies of the bodies, each drawn from a file that is saved beside it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from aetdice.files import write_json
from aetdice.report.body_figures import collapse_panels, path_panels
from aetdice.studies.bodies.measure import behaviours_of
from aetdice.studies.bodies.scenes import Convex, Efficiency, Scene
from aetdice.studies.bodies.watch import STRIDE

PATHS = ("AETDICE", "AET-ESR [0.5, 0.5]", "Lin-[0.5, 0.5]", "cloning")
"""Whose ways are drawn: those of specialists, and those that go between."""
FALLS = ("AETDICE CD(0.1)", "AETDICE safe-CD(0.1)", "AETDICE CD(0.5)", "AETDICE safe-CD(0.5)")
"""Without and with the safety utility."""


def figures(merged: Mapping[str, Any], scene: Scene, horizon: int, folder: Path) -> None:
    """What a table has to show: where Ants go, and whether Walker2d stays up."""
    if isinstance(scene, Convex) and scene.body == "ant":
        behaviours(scene, merged["rows"], folder)
    elif isinstance(scene, Efficiency) and scene.safe:
        collapse(scene, merged["rows"], horizon, folder)


def behaviours(scene: Scene, rows: Mapping[str, Any], folder: Path) -> None:
    """Shares of behaviours A, B and C over all episodes, and the x-y paths of some."""
    panels = {
        name: {"shares": rows[name]["shares"], "paths": _paths(rows[name]["ways"])}
        for name in PATHS
        if name in rows
    }
    if panels:
        stem = folder / f"behaviours-{scene.name}"
        write_json(stem.with_suffix(".json"), {"stride": STRIDE, "panels": panels})
        path_panels(stem.with_suffix(".png"), panels, f"{scene.title}: where the Ant goes")


def _paths(ways: list[list[list[float]]]) -> list[dict[str, Any]]:
    kinds = behaviours_of(np.array([way[-1] for way in ways])) if ways else []
    return [{"behaviour": kind, "way": way} for kind, way in zip(kinds, ways, strict=True)]


def collapse(scene: Scene, rows: Mapping[str, Any], horizon: int, folder: Path) -> None:
    """The share of episodes that are still up, and the torso's height in some of them."""
    times = list(range(0, horizon + 1, STRIDE))
    panels = {
        name: {
            "up": [_still_up(np.array(rows[name]["lengths"]), time, horizon) for time in times],
            "upright": rows[name]["upright"]["mean"],
            "heights": [[place[1] for place in way] for way in rows[name]["ways"]],
        }
        for name in FALLS
        if name in rows
    }
    if panels:
        stem = folder / f"collapse-{scene.name}"
        write_json(stem.with_suffix(".json"), {"times": times, "stride": STRIDE, "panels": panels})
        collapse_panels(stem.with_suffix(".png"), panels, times, f"{scene.title}: who stays up")


def _still_up(lengths: Int[np.ndarray, " n"], time: int, horizon: int) -> float:
    return float(np.mean((lengths > time) | (lengths == horizon)))
