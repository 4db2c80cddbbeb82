"""The study's parts read together: rows, references and gaps."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from aetdice.studies.estimates import estimate
from aetdice.studies.pointmaze.coverage import ENDOWED, GOALS
from aetdice.studies.pointmaze.paper import COLUMNS, PAPER
from aetdice.studies.pointmaze.parts import REFERENCE
from aetdice.studies.pointmaze.plan import MAZES

CLONING = "cloning"
STATE_ONLY = "cloning, state only"
METHODS = ("AETDICE ", "OptiDICE ", "FairDICE ", "ESR-")


def merge(results: Mapping[str, Mapping[str, Any]], maze: str) -> dict[str, Any]:
    """All that tables and figures show; parts that are missing leave gaps."""
    reference = results.get(REFERENCE, {})
    rows: dict[str, Any] = {}
    for name, part in results.items():
        if "rows" not in part or name.startswith(GOALS):
            continue
        for row, found in part["rows"].items():
            rows[row] = {
                "rule": found["rule"],
                "data_score": found["data_score"],
                "settings": [_setting(entry, trained_for(row), reference) for entry in found["settings"]],
                "selected": found["selected"],
                "best": found["best"],
            }
        clone = STATE_ONLY if name in ("optidice", "fairdice") else CLONING
        if clone not in rows:
            rows[clone] = _clone(part["twins"])
    for row, entry in rows.items():
        entry["paper"] = PAPER[maze].get(row)
    return {
        "maze": maze,
        "horizon": MAZES[maze]().horizon,
        "rows": dict(sorted(rows.items(), key=lambda item: CLONING in item[0])),
        "reference": reference,
        "endowed": results.get(ENDOWED),
        "goals": {name.removeprefix(GOALS): p for name, p in results.items() if name.startswith(GOALS)},
    }


def trained_for(row: str) -> str:
    """What the reference calls the objective of a row."""
    for method in METHODS:
        row = row.removeprefix(method)
    return {"BSR 0.5": "BSR[alpha=0.5]", "IQL": "ESR"}.get(row, row)


def column_of(row: str) -> str:
    """The column in which a row should be among the best."""
    name = trained_for(row)
    return next((heading for heading, column in COLUMNS.items() if column == name), "LSR")


def _setting(entry: Mapping[str, Any], objective: str, reference: Mapping[str, Any]) -> dict[str, Any]:
    """One setting's seeds in numbers, and the share of the gap that each closes."""
    seeds = entry["seeds"]
    scores, twins = ([pick(seed) for seed in seeds] for pick in (_trained, lambda seed: seed["twin"]))
    best = reference.get("schedules", {}).get(objective, {}).get("value")
    shares = (
        None if best is None else [(s - twin) / (best - twin) for s, twin in zip(scores, twins, strict=True)]
    )
    return {
        **_seeds(seeds),
        "params": {name: value for name, value in entry["params"].items() if name != "algorithm"},
        "twin": float(np.mean(twins)),
        "schedule": best,
        "gap_shares": shares,
        **{
            name: float(np.mean([seed["diagnostics"][name] for seed in seeds]))
            for name in seeds[0]["diagnostics"]
        },
    }


def _clone(twins: list[Mapping[str, Any]]) -> dict[str, Any]:
    return {"rule": "nothing to choose", "settings": [_seeds(twins)], "selected": 0, "best": 0}


def _seeds(seeds: list[Mapping[str, Any]]) -> dict[str, Any]:
    names = [*COLUMNS.values(), *(["trained"] if "trained" in seeds[0]["scores"] else [])]
    return {
        "scores": {name: estimate([s["scores"][name] for s in seeds]).record() for name in names},
        "mean_returns": np.mean([s["mean_returns"] for s in seeds], axis=0).tolist(),
        "variances": np.mean([s["variances"] for s in seeds], axis=0).tolist(),
        "returns": [episode for s in seeds for episode in s.get("returns", [])],
        "quantiles": _mean([s["quantiles"] for s in seeds if "quantiles" in s]),
    }


def _trained(seed: Mapping[str, Any]) -> float:
    return float(seed["scores"]["trained"]["value"])


def _mean(curves: list[Any]) -> list[list[float]] | None:
    return np.mean(curves, axis=0).tolist() if curves else None
