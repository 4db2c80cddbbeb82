"""Figures of the MuJoCo studies: where Ants go, and whether Walker2d stays up."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from aetdice.envs.mujoco.recorder import STRIDE
from aetdice.files import write_json
from aetdice.report.body_figures import collapse_panels, path_panels
from aetdice.studies.mujoco_rollouts import DIRECTIONS, STAY_UP, UPRIGHT, behaviours_of
from aetdice.studies.score_tables import setting
from aetdice.studies.study import Summary

PATHS = ("AETDICE", "AET-ESR [0.5, 0.5]", "Lin-[0.5, 0.5]", "cloning")
"""Whose paths are drawn: those of specialists, and those that go between."""
FALLS = tuple(f"AETDICE safe-CD({rho}){ending}" for rho in (0.1, 0.5) for ending in (", safety left out", ""))
"""Without and with the safety utility, all else the same."""


def draw_behaviours(name: str, summary: Summary, folder: Path) -> None:
    """Shares of behaviours A, B and C over all episodes, and the x-y paths of some."""
    panels = {}
    for row, shown in _shown(summary, PATHS).items():
        paths = shown["samples"]["paths"]
        kinds = behaviours_of(np.array([path[-1] for path in paths]))
        panels[row] = {
            "shares": {kind: share["mean"] for kind, share in shown["quantities"][DIRECTIONS].items()},
            "paths": [{"behaviour": kind, "path": path} for kind, path in zip(kinds, paths, strict=True)],
        }
    if panels:
        stem = folder / f"behaviours-{name}"
        write_json(stem.with_suffix(".json"), {"stride": STRIDE, "panels": panels})
        path_panels(stem.with_suffix(".png"), panels, f"{summary['title']}: {DIRECTIONS}")


def draw_collapse(name: str, summary: Summary, folder: Path) -> None:
    """The share of episodes that are still up, and the torso's height in some of them."""
    horizon, panels = summary["horizon"], {}
    times = list(range(0, horizon + 1, STRIDE))
    for row, shown in _shown(summary, FALLS).items():
        lengths = np.array(shown["samples"]["lengths"])
        panels[row] = {
            "up": [float(np.mean((lengths > time) | (lengths == horizon))) for time in times],
            "upright": shown["quantities"][UPRIGHT][STAY_UP]["mean"],
            "heights": [[place[1] for place in path] for path in shown["samples"]["paths"]],
        }
    if panels:
        stem = folder / f"collapse-{name}"
        write_json(stem.with_suffix(".json"), {"times": times, "stride": STRIDE, "panels": panels})
        collapse_panels(stem.with_suffix(".png"), panels, times, f"{summary['title']}: who stays up")


def _shown(summary: Summary, names: tuple[str, ...]) -> Mapping[str, Any]:
    return {name: setting(summary["rows"][name]) for name in names if name in summary["rows"]}
