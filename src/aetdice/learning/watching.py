"""A run as it stands, by the files in its folder: nothing is trained, and nobody is asked."""

import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from aetdice.errors import InputError
from aetdice.learning.folder import REQUEST, RESULT, check_run, read_request, read_result
from aetdice.learning.trackers import METRICS

NOT_METRICS = ("stage", "step", "seconds")
RECENT = 10
"""Lines by which the pace of a stage is measured."""
LEAST_SILENCE, SILENCE = 60.0, 10
"""Seconds, and usual times between lines, after which a run may have been cut off."""


@dataclass(frozen=True)
class Curve:
    """A metric over the steps of a stage: the median of the members, and what they have now."""

    name: str
    steps: list[int]
    values: list[float]
    low: float
    high: float


@dataclass(frozen=True)
class RunState:
    """How far a run has come; `result` is there once it has ended."""

    folder: str
    algorithm: str
    objectives: list[str]
    totals: dict[str, int]
    """Steps of each stage, in order; empty for runs that do not say."""
    stage: str | None
    step: int
    steps: dict[str, int]
    """Of every stage, the last step."""
    left: float | None
    """Seconds until the present stage is over, by its latest pace."""
    silent: float
    """Seconds since the last line."""
    cut: bool
    """Whether it has been silent for so long that its process may be gone."""
    curves: list[Curve] = field(default_factory=list)
    result: dict[str, Any] | None = None

    @property
    def ended(self) -> bool:
        return self.result is not None

    def record(self) -> dict[str, Any]:
        """As JSON."""
        return {**asdict(self), "ended": self.ended}


def watch_run(folder: Path, now: float | None = None) -> RunState:
    """The present state of a run's folder; `InputError` where it is none."""
    check_run(folder, "; a training writes it once its settings are chosen")
    request = read_request(folder)
    objectives = [str(entry["name"]) for entry in request["objectives"]]
    try:
        totals = {name: int(total) for name, total in request.get("stages", {}).items() if total}
    except (TypeError, ValueError) as error:
        raise InputError(f"{folder / REQUEST} cannot be read: {error}") from error
    rows = read_metrics(folder / METRICS)
    steps = {row["stage"]: row["step"] for row in rows}
    stage = rows[-1]["stage"] if rows else None
    recent = _recent(rows)
    changed = max(path.stat().st_mtime for path in (folder / REQUEST, folder / METRICS) if path.exists())
    silent = max(0.0, (time.time() if now is None else now) - changed)
    result = _ending(folder) if (folder / RESULT).exists() else None
    pace = _pace(recent)
    usual = 0.0 if len(recent) < 2 else (recent[-1]["seconds"] - recent[0]["seconds"]) / (len(recent) - 1)
    remaining = totals.get(stage, 0) - steps[stage] if stage is not None else 0
    return RunState(
        folder=str(folder),
        algorithm=request["algorithm"],
        objectives=objectives,
        totals=totals,
        stage=stage,
        step=steps[stage] if stage is not None else 0,
        steps=steps,
        left=remaining / pace if pace and remaining >= 0 and result is None else None,
        silent=silent,
        cut=result is None and silent > max(LEAST_SILENCE, SILENCE * usual),
        curves=_curves([row for row in rows if row["stage"] == stage]),
        result=result,
    )


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The lines so far; one that is still being written is left for the next time."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    except ValueError as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    whole, rows = text[: text.rfind("\n") + 1], []
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            row = json.loads(line)
            if not isinstance(row, dict):
                raise ValueError("it is no object")
            if lost := [name for name in NOT_METRICS if name not in row]:
                raise ValueError(f"it has no {lost[0]!r}")
            known = {"stage": str(row["stage"]), "step": int(row["step"]), "seconds": float(row["seconds"])}
            rows.append({**row, **known})
        except (ValueError, TypeError, RecursionError) as error:
            raise InputError(f"{path}: line {number} is no line of metrics: {error}") from error
    return rows


def _ending(folder: Path) -> dict[str, Any]:
    """What people ask a finished run first."""
    found = read_result(folder)
    try:
        each = [
            {key: one[key] for key in ("objective", "score", "twin_score", "verdict", "trusted")}
            for one in found["by_objective"]
        ]
        return {"by_objective": each, "seconds": found["seconds"]}
    except LookupError as error:
        raise InputError(f"{folder / RESULT} is not the result of a run: it has no {error}") from error


def _recent(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The last lines of the present stage; a run that was resumed counts its seconds from 0 again."""
    found: list[dict[str, Any]] = []
    for row in reversed(rows[-RECENT:]):
        later = found[-1] if found else row
        if row["stage"] != later["stage"] or row["seconds"] > later["seconds"]:
            break
        found.append(row)
    return found[::-1]


def _pace(recent: list[dict[str, Any]]) -> float | None:
    """Steps per second."""
    if len(recent) < 2 or recent[-1]["seconds"] <= recent[0]["seconds"]:
        return None
    return float((recent[-1]["step"] - recent[0]["step"]) / (recent[-1]["seconds"] - recent[0]["seconds"]))


def _curves(rows: list[dict[str, Any]]) -> list[Curve]:
    """Of every metric that is one number per member; of a run that was resumed, what was done last."""
    latest = {row["step"]: row for row in rows}
    steps = sorted(latest)
    curves = []
    for name in rows[-1] if rows else ():
        values: list[Any] = [latest[step].get(name) for step in steps]
        if name in NOT_METRICS or not all(_is_flat(each) for each in values):
            continue
        medians = [float(np.median(each)) for each in values]
        curves.append(Curve(name, steps, medians, float(min(values[-1])), float(max(values[-1]))))
    return curves


def _is_flat(values: Any) -> bool:
    return isinstance(values, list) and bool(values) and all(isinstance(each, int | float) for each in values)
