"""A study's parts read together: for every table its rows."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from aetdice.studies.bodies.paper import paper_rows
from aetdice.studies.bodies.parts import REFERENCE, part_name, walks_of
from aetdice.studies.bodies.scenes import Scene
from aetdice.studies.estimates import estimate

Results = Mapping[str, Mapping[str, Any]]


def merge(results: Results, scene: Scene, horizon: int) -> dict[str, Any]:
    """All that is shown of a table; parts that are missing leave gaps."""
    reference = results.get(part_name(scene, REFERENCE), {})
    rows: dict[str, Any] = {}
    clones: dict[str, Any] = {}
    for population in scene.populations(horizon):
        name = part_name(scene, population.name)
        trained, walked = results.get(name), results.get(walks_of(name))
        if trained is None or walked is None:
            continue
        for row, found in walked["rows"].items():
            rows[row] = _row(trained["rows"][row], found)
        if population.clones:
            clones[population.clones] = {**_seeds(walked["twins"]), "params": {}, "settings": []}
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
    parts = (part for name, part in results.items() if name.startswith(part_name(scene, "")))
    return next((part["objectives"] for part in parts if "objectives" in part), [])


def _row(trained: Mapping[str, Any], walked: Mapping[str, Any]) -> dict[str, Any]:
    """What walked, and every setting with what the rule has to go by."""
    settings = [
        {
            "params": {name: value for name, value in entry["params"].items() if name != "algorithm"},
            "score": walked["scores"].get(str(i)),
            "selected": i == trained["selected"],
            "diagnostics": {
                name: float(np.mean([seed["diagnostics"][name] for seed in entry["seeds"]]))
                for name in entry["seeds"][0]["diagnostics"]
            },
        }
        for i, entry in enumerate(trained["settings"])
    ]
    chosen = settings[walked["setting"]]["params"]
    return {**_seeds(walked["seeds"]), "params": chosen, "rule": trained["rule"], "settings": settings}


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
