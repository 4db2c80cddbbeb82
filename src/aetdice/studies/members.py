"""Every member that a study has trained, as a row of the table that sweeps have, too."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from aetdice.engines.task import attempts_in
from aetdice.learning.setup import readable
from aetdice.learning.table import PASSING, Rows, arrow_table, write_table
from aetdice.studies.merging import whole
from aetdice.studies.parts import PARTS, Results, made_in
from aetdice.studies.populations import REFERENCE, rollouts_name, training_name
from aetdice.studies.study import Population, Study, Table


def write_members(study: Study, results: Results, folder: Path) -> Path:
    """`results.parquet` in the study's folder; `InputError` without pyarrow."""
    return write_table(arrow_table(member_rows(study, results, folder)), folder)


def member_rows(study: Study, results: Results, folder: Path) -> Rows:
    """In the order of the tables; of parts that are done."""
    varied = _varied(study)
    tables = ((table, population) for table in study.tables for population in table.populations)
    rows = [row for pair in tables for row in _rows(*pair, varied, results)]
    rows += study.members(results)
    made = made_in(folder)
    return [{**row, **_about(row["job"], made, folder)} for row in rows]


def _about(part: str, made: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """How its part was made, as far as that is known of parts from elsewhere."""
    attempts, known = attempts_in(folder / PARTS / part), made.get(part, {})
    passing = dict(zip(PASSING, (known.get("seconds"), attempts.host, attempts.times), strict=True))
    return {"versions": known.get("versions", {}), **passing}


def _rows(
    table: Table, population: Population, varied: Mapping[str, set[str]], results: Results
) -> Iterator[dict[str, Any]]:
    name = training_name(table, population)
    trained, reference = results.get(name), results.get(f"{table.prefix}{REFERENCE}", {})
    if trained is None:
        return
    policies = results.get(rollouts_name(table, population), {}).get("policies", {})
    with whole(name):
        for row in population.rows:
            found = trained["rows"][row.name]
            best = reference.get("references", {}).get(row.optimum, {}) if table.certified else {}
            shared = {
                "dataset": table.name,
                "data_sha256": (reference.get("data") or {}).get("sha256"),
                "objective": row.objective.short_name,
                "definition": row.objective.name,
                "algorithm": population.algorithm,
                "horizon": table.horizon,
                "settings": _settings(population, varied[population.algorithm]),
                "rule": found["rule"],
                "exact_score": best.get("value"),
                "data_score": found["data_score"],
                "job": name,
            }
            for index, setting in enumerate(found["settings"]):
                for seed in setting["seeds"]:
                    twin = policies.get(trained["twins"][str(seed["seed"])])
                    yield {
                        **shared,
                        **setting["params"],
                        "seed": seed["seed"],
                        "selected": index == found["selected"],
                        **_score("score", policies.get(seed["policy"]), row.name),
                        **_score("twin_score", twin, row.name),
                        "verdict": seed.get("verdict"),  # not kept before there was this table
                        "trusted": seed.get("trusted"),
                        "diagnostics": seed["diagnostics"],
                        "member": int(seed["policy"].removeprefix("policy-")),
                    }


def _score(name: str, rollouts: Mapping[str, Any] | None, row: str) -> dict[str, float]:
    """Under the objective that it was trained for; nothing where it was not rolled out."""
    if rollouts is None:
        return {}
    found = rollouts["trained"][row]
    return {name: found["value"], f"{name}_low": found["low"], f"{name}_high": found["high"]}


def _settings(population: Population, names: set[str]) -> dict[str, Any]:
    changed = readable(population.config, population.algorithm).changed()
    return {name: changed[name] for name in sorted(names & changed.keys())}


def _varied(study: Study) -> dict[str, set[str]]:
    """By algorithm the settings in which the study's populations differ."""
    changed: dict[str, list[dict[str, Any]]] = {}
    for table in study.tables:
        for each in table.populations:
            changed.setdefault(each.algorithm, []).append(readable(each.config, each.algorithm).changed())
    return {
        algorithm: {
            name
            for name in set().union(*configs)
            if any(config.get(name) != configs[0].get(name) for config in configs)
        }
        for algorithm, configs in changed.items()
    }
