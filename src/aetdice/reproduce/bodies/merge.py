"""A study's parts read together: for every table its rows."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from aetdice.reproduce.bodies.paper import paper_rows
from aetdice.reproduce.bodies.parts import REFERENCE, part_name
from aetdice.reproduce.bodies.scenes import Scene
from aetdice.reproduce.estimates import estimate

CLONING = "cloning"
STATE_ONLY = "cloning, state only"
CHOICES = {
    "selected": "settings chosen without the environment",
    "best": "settings chosen by looking at the environment, for comparison",
}

Results = Mapping[str, Mapping[str, Any]]


def merge(results: Results, scene: Scene, horizon: int) -> dict[str, Any]:
    """All that is shown of a table; parts that are missing leave gaps."""
    reference = results.get(part_name(scene, REFERENCE), {})
    rows: dict[str, Any] = {}
    clones: dict[str, Any] = {}
    for population in scene.populations(horizon):
        part = results.get(part_name(scene, population.name))
        if part is None:
            continue
        for name, row in part["rows"].items():
            rows[name] = {
                "rule": row["rule"],
                "settings": [_setting(setting) for setting in row["settings"]],
                "selected": row["selected"],
                "best": row["best"],
            }
        clone = STATE_ONLY if population.algorithm in ("optidice", "fairdice") else CLONING
        clones.setdefault(clone, _clone(part["twins"]))
    paper = paper_rows(scene)
    rows = {**rows, **clones}
    return {
        "title": scene.title,
        "columns": list(scene.columns(horizon)),
        "objectives": _objectives(results, scene),
        "rows": {name: {**row, "paper": paper.get(name, {})} for name, row in rows.items()},
        "references": reference.get("references", {}),
    }


def _objectives(results: Results, scene: Scene) -> list[str]:
    names = [part["objectives"] for name, part in results.items() if name.startswith(part_name(scene, ""))]
    return names[0] if names else []


def _setting(entry: Mapping[str, Any]) -> dict[str, Any]:
    seeds = entry["seeds"]
    return {
        **_seeds(seeds),
        "params": {name: value for name, value in entry["params"].items() if name != "algorithm"},
        "twin": float(np.mean([seed["twin"] for seed in seeds])),
        "diagnostics": {
            name: float(np.mean([seed["diagnostics"][name] for seed in seeds]))
            for name in seeds[0]["diagnostics"]
        },
    }


def _clone(twins: list[Mapping[str, Any]]) -> dict[str, Any]:
    setting = {**_seeds(twins), "params": {}, "diagnostics": {}}
    return {"rule": "nothing to choose", "settings": [setting], "selected": 0, "best": 0}


def _seeds(seeds: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Seeds in numbers; their episodes one after the other."""
    return {
        "scores": {name: _score([s["scores"][name] for s in seeds]) for name in seeds[0]["scores"]},
        "mean_returns": np.mean([s["mean_returns"] for s in seeds], axis=0).tolist(),
        "upright": _spread([s["upright"] for s in seeds]),
        "shares": _shares([s["shares"] for s in seeds]),
        "lengths": [length for s in seeds for length in s.get("lengths", [])],
        "ways": [way for s in seeds for way in s.get("ways", [])],
    }


def _score(seeds: list[Mapping[str, float]]) -> dict[str, Any]:
    """The spread between seeds as the paper has it, and the mean's own interval."""
    return {**_spread([seed["value"] for seed in seeds]), "half": estimate(seeds).half}


def _spread(values: list[float]) -> dict[str, Any]:
    return {"mean": float(np.mean(values)), "sd": float(np.std(values, ddof=1)) if len(values) > 1 else None}


def _shares(seeds: list[Mapping[str, float] | None]) -> dict[str, float] | None:
    known = [shares for shares in seeds if shares is not None]
    return {name: float(np.mean([shares[name] for shares in known])) for name in known[0]} if known else None
