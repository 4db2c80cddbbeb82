"""Quantiles of the returns of a table's rows, drawn from the samples that were kept."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from aetdice.files import write_json
from aetdice.report.figures import quantile_curves
from aetdice.studies.score_tables import setting
from aetdice.studies.study import rounded

LEVELS = np.linspace(0, 1, 101).tolist()


def draw_quantiles(rows: Mapping[str, Any], objectives: Sequence[str], folder: Path, title: str) -> None:
    """One curve per row and objective."""
    curves = {
        name: rounded(np.quantile(setting(row)["samples"]["returns"], LEVELS, axis=0).T)
        for name, row in rows.items()
    }
    if curves:
        write_json(folder / "quantiles.json", {"levels": LEVELS, "curves": curves})
        quantile_curves(folder / "quantiles.png", LEVELS, curves, objectives, title)
