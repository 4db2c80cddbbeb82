"""A study's parts read together: the summary that tables and figures are made from."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from aetdice.errors import InputError
from aetdice.evaluation.estimates import estimate, spread
from aetdice.learning.run import gap_share
from aetdice.studies.parts import Results
from aetdice.studies.populations import REFERENCE, rollouts_name, training_name
from aetdice.studies.study import Population, Row, Study, Summary, Table


def merge(study: Study, results: Results) -> dict[str, Any]:
    """All that is shown; parts that are missing leave gaps."""
    others = (*(probe.part for probe in study.probes), *study.parts)
    return {
        "study": study.name,
        "tables": {table.name: merge_table(table, results) for table in study.tables},
        "probes": {part.name: results[part.name] for part in others if part.name in results},
    }


def merge_table(table: Table, results: Results) -> Summary:
    """One table: rows with every setting, then the rows of cloning, and the references."""
    reference = results.get(f"{table.prefix}{REFERENCE}", {})
    references = reference.get("references", {})
    rows: dict[str, Any] = {}
    cloning: dict[str, Any] = {}
    for population in table.populations:
        trained = results.get(training_name(table, population))
        rolled_out = results.get(rollouts_name(table, population))
        if trained is None or rolled_out is None:
            continue
        with whole(training_name(table, population)):
            policies = rolled_out["policies"]
            rows |= {
                row.name: _row(row, population, trained, policies, references) for row in population.rows
            }
            if population.cloning_row is not None:
                twins = [policies[name] for name in trained["twins"].values()]
                cloning[population.cloning_row] = _cloning_row(twins)
    return {
        "title": table.title,
        "horizon": table.horizon,
        "interval": table.interval,
        "columns": {heading: objective.name for heading, objective in table.columns.items()},
        "objectives": reference.get("objectives", []),
        "data": reference.get("data"),
        "rows": {
            name: {**row, "paper": {h: list(cell) for h, cell in table.paper.get(name, {}).items()}}
            for name, row in {**rows, **cloning}.items()
        },
        "references": references,
    }


@contextlib.contextmanager
def whole(part: str) -> Iterator[None]:
    """`InputError` where a part's results lack something."""
    try:
        yield
    except (LookupError, TypeError, AttributeError) as error:
        raise InputError(
            f"the results of {part} are not whole: delete its files to make them again"
        ) from error


def _row(
    row: Row,
    population: Population,
    trained: Mapping[str, Any],
    policies: Mapping[str, Any],
    references: Mapping[str, Any],
) -> dict[str, Any]:
    found = trained["rows"][row.name]
    best_known = references.get(row.optimum or "", {}).get("value")
    settings = [_setting(row, setting, trained, policies, best_known) for setting in found["settings"]]
    evaluated = [i for i, setting in enumerate(settings) if setting["trained"] is not None]
    best = max(evaluated, key=lambda i: settings[i]["trained"]["mean"])
    return {
        "algorithm": population.algorithm,
        "objective": row.objective.name,
        "column": row.column,
        "optimum": row.optimum,
        "data_score": found["data_score"],
        "rule": found["rule"],
        "selected": found["selected"],
        "best": best,
        "shown": best if population.shows == "best" else found["selected"],
        "edges": {"selected": edges_of(settings, found["selected"]), "best": edges_of(settings, best)},
        "settings": settings,
    }


def edges_of(settings: Sequence[Mapping[str, Any]], which: int) -> dict[str, str]:
    """The hyper-parameters of a setting that have the smallest or the largest of several values tried.

    What lies beyond is not known, so a grid whose edge is taken should have been wider.
    """
    found = {}
    for name, value in settings[which]["params"].items():
        tried = {setting["params"][name] for setting in settings}
        if len(tried) > 1 and value in (min(tried), max(tried)):
            found[name] = "smallest" if value == min(tried) else "largest"
    return found


def _cloning_row(twins: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    nothing = dict.fromkeys(("objective", "column", "optimum", "data_score"))
    setting = {"params": {}, "diagnostics": {}, "trained": None, **over_seeds(twins)}
    chosen = dict.fromkeys(("selected", "best", "shown"), 0)
    return {"algorithm": "bc", **nothing, "rule": "nothing to choose", **chosen, "settings": [setting]}


def _setting(
    row: Row,
    setting: Mapping[str, Any],
    trained: Mapping[str, Any],
    policies: Mapping[str, Any],
    best_known: float | None,
) -> dict[str, Any]:
    """One setting's seeds in numbers; what was not rolled out has diagnostics only."""
    seeds = setting["seeds"]
    known = {
        "params": setting["params"],
        "diagnostics": {
            name: float(np.mean([seed["diagnostics"][name] for seed in seeds]))
            for name in seeds[0]["diagnostics"]
        },
    }
    if seeds[0]["policy"] not in policies:
        return {**known, "trained": None}
    own = [policies[seed["policy"]] for seed in seeds]
    scores = [found["trained"][row.name] for found in own]
    names = [trained["twins"][str(seed["seed"])] for seed in seeds]
    twins = [policies[name]["trained"][row.name]["value"] for name in names if name in policies]
    gaps = None
    if best_known is not None and twins:
        gaps = [gap_share(s["value"], twin, best_known) for s, twin in zip(scores, twins, strict=True)]
    return {
        **known,
        "trained": estimate(scores).record(),
        "twin": float(np.mean(twins)) if twins else None,
        "gap_shares": gaps,
        **over_seeds(own),
    }


def over_seeds(seeds: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Rollouts of several seeds: estimates of scores, spreads of quantities, samples one after the other."""
    first = seeds[0]
    return {
        "scores": {name: estimate([s["scores"][name] for s in seeds]).record() for name in first["scores"]},
        "mean_returns": np.mean([s["mean_returns"] for s in seeds], axis=0).tolist(),
        "variances": np.mean([s["variances"] for s in seeds], axis=0).tolist(),
        "quantities": {
            group: {name: spread([s["quantities"][group][name] for s in seeds]) for name in numbers}
            for group, numbers in first["quantities"].items()
        },
        "samples": {
            name: [entry for s in seeds for entry in s["samples"][name]] for name in first["samples"]
        },
    }
