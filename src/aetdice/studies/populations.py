"""The parts of a study: the references of each table, then its populations, trained and rolled out."""

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from aetdice.errors import InputError
from aetdice.evaluation import load_policy
from aetdice.files import write_json
from aetdice.learning.run import Run
from aetdice.learning.setup import readable
from aetdice.learning.training import train
from aetdice.objectives import in_float64
from aetdice.progress import Progress
from aetdice.studies.parts import Part, read_results
from aetdice.studies.study import DATA_SEED, SEED, Population, Rollouts, Row, Study, Table, scores_of

REFERENCE = "reference"
ROLLOUTS = "rollouts"
TRIED = 6
"""Settings, where it is left to the data how many are tried: the most that are."""


def parts_of(study: Study) -> list[Part]:
    """Every table's parts, then the probes and the study's other parts."""
    own = [part for table in study.tables for part in _parts_of(table)]
    return [*own, *(probe.part for probe in study.probes), *study.parts]


def training_name(table: Table, population: Population) -> str:
    return f"{table.prefix}{population.name}"


def rollouts_name(table: Table, population: Population) -> str:
    """The part that has the rollouts of a population."""
    return training_name(table, population) + (f"-{ROLLOUTS}" if table.separate else "")


def _parts_of(table: Table) -> Iterator[Part]:
    def refer(folder: Path, _: Progress) -> dict[str, Any]:
        dataset = table.dataset(folder.parent)
        recorded = dataset.recorded
        data = {"episodes": len(recorded), "steps": recorded.steps, "sha256": recorded.sha256}
        names = list(dataset.seen.objectives)
        return {"references": table.references(dataset), "objectives": names, "data": data}

    yield Part(f"{table.prefix}{REFERENCE}", table_facts(table), refer)
    for population in table.populations:
        yield from _population_parts(table, population)


def _population_parts(table: Table, population: Population) -> Iterator[Part]:
    evaluated = {"episodes": table.effort.episodes, "rollout_seed": SEED}
    facts = {**table_facts(table), **population_facts(table, population)}

    def train_only(folder: Path, progress: Progress) -> dict[str, Any]:
        return training_record(train_population(table, population, folder, progress), population)

    def train_and_roll_out(folder: Path, progress: Progress) -> dict[str, Any]:
        found = train_only(folder, progress)
        return {**found, "policies": roll_out(table, population, found, folder, folder / ROLLOUTS, progress)}

    def roll_out_only(folder: Path, progress: Progress) -> dict[str, Any]:
        found = read_results(folder.parent, training)
        policies = folder.parent / training.name
        return {"policies": roll_out(table, population, found, policies, folder, progress)}

    name, members = training_name(table, population), members_of(table, population)
    if not table.separate:
        yield Part(name, {**facts, **evaluated}, train_and_roll_out, members=members)
        return
    training = Part(name, facts, train_only, members=members)
    yield training
    yield Part(rollouts_name(table, population), {**facts, **evaluated}, roll_out_only, after=(name,))


def members_of(table: Table, population: Population) -> int:
    """How many it trains, as far as that is known before."""
    settings = math.prod(map(len, population.grid.values())) if population.grid else TRIED
    return len(population.rows) * len(table.effort.seeds) * settings


def table_facts(table: Table) -> dict[str, Any]:
    """All that data, columns and references depend on."""
    columns = {heading: objective.name for heading, objective in table.columns.items()}
    about = {"table": table.name, "horizon": table.horizon}
    about |= {"dataset": table.effort.dataset, "data_seed": DATA_SEED}
    return {**about, "columns": columns, **table.facts}


def population_facts(table: Table, population: Population) -> dict[str, Any]:
    """All that a training depends on, beside its data."""
    return {
        "algorithm": population.algorithm,
        "rows": {row.name: row.objective.name for row in population.rows},
        "grid": dict(population.grid),
        "seeds": table.effort.seeds,
        "config": asdict(readable(population.config, population.algorithm)),
    }


def train_population(table: Table, population: Population, folder: Path, progress: Progress) -> Run:
    """Every setting of every row, one population; its policies stay in the folder."""
    dataset = table.dataset(folder.parent)
    returns = dataset.seen.returns
    grid: dict[str, Any] = dict(population.grid)
    return train(
        dataset.recorded,
        [table.trained(row.objective, returns) for row in population.rows],
        algorithm=population.algorithm,
        horizon=table.horizon,
        seed=table.effort.seeds,
        transform=dataset.transform,
        config=readable(population.config, population.algorithm),
        out=folder,
        progress=progress,
        **grid,
    )


def training_record(run: Run, population: Population) -> dict[str, Any]:
    """What a training leaves beside its policies: of every row the settings, seed by seed.

    Policies and twins are called as the files are that `train` leaves in its folder.
    """
    size = len(run.members) // len(population.rows)
    twins: dict[str, str] = {}
    for index, member in enumerate(run.members):
        twins.setdefault(str(member.params["seed"]), f"twin-{index}")
    return {
        "rows": {row.name: _row_record(run, row, i, size) for i, row in enumerate(population.rows)},
        "twins": twins,
        "seconds": run.seconds,
    }


def _row_record(run: Run, row: Row, which: int, size: int) -> dict[str, Any]:
    settings: dict[str, dict[str, Any]] = {}
    first, selection = which * size, run.selections[which]
    for index in range(first, first + size):
        member = run.members[index]
        own = {n: v for n, v in member.params.items() if n not in ("algorithm", "objective", "seed")}
        setting = settings.setdefault(str(own), {"params": own, "seeds": []})
        known = {name: value for name, value in member.diagnostics.items() if isinstance(value, float)}
        setting["seeds"].append(
            {
                "seed": member.params["seed"],
                "policy": f"policy-{index}",
                "diagnostics": known,
                "verdict": member.verdict.words,
                "trusted": member.verdict.trusted,
            }
        )
    return {
        "data_score": float(in_float64(row.objective)(run.data_returns)),
        "settings": list(settings.values()),
        "selected": (selection.chosen - first) // (size // len(settings)),
        "rule": selection.rule,
    }


def roll_out(
    table: Table,
    population: Population,
    trained: dict[str, Any],
    policies: Path,
    folder: Path,
    progress: Progress,
) -> dict[str, Any]:
    """What every policy that is to be evaluated attains; what the folder has already is not done again."""
    wanted = _wanted(population, trained)
    paths = {name: policies / f"{name}.npz" for name in wanted}
    for path in paths.values():
        if not path.is_file():
            raise InputError(f"{path} is missing: bring the folder of the training, too")
    conditions = json.dumps([table_facts(table), table.effort.episodes]).encode()
    digests = {n: hashlib.sha256(path.read_bytes() + conditions).hexdigest() for n, path in paths.items()}
    done = {name: found for name in wanted if (found := _kept(folder, name, digests[name]))}
    missing = [name for name in wanted if name not in done]
    for names in [[name] for name in missing] if table.separate else [missing] * bool(missing):
        played = table.play([load_policy(paths[name]) for name in names], table.effort.episodes)
        for name, rollouts in zip(names, played, strict=True):
            done[name] = {"policy": digests[name], **rollouts_record(table, wanted[name], rollouts)}
            write_json(folder / f"{name}.json", done[name])
        progress(ROLLOUTS, len(done), len(wanted), {})
    return {name: done[name] for name in wanted}


def rollouts_record(table: Table, rows: tuple[Row, ...], rollouts: Rollouts) -> dict[str, Any]:
    """Episodes under every column and under the objectives of the rows, and what they look like."""
    returns = rollouts.returns
    return {
        "episodes": len(returns),
        "scores": scores_of(returns, table.columns),
        "trained": scores_of(returns, {row.name: row.objective for row in rows}),
        "mean_returns": returns.mean(axis=0).tolist(),
        "variances": returns.var(axis=0, ddof=1).tolist(),
        "quantities": {group: dict(numbers) for group, numbers in rollouts.quantities.items()},
        "samples": dict(rollouts.samples),
    }


def _wanted(population: Population, trained: dict[str, Any]) -> dict[str, tuple[Row, ...]]:
    """The policies to evaluate by name, with the rows whose objectives they are scored under."""
    wanted: dict[str, tuple[Row, ...]] = {}
    for row in population.rows:
        found = trained["rows"][row.name]
        chosen = [found["selected"]] if population.evaluates == "selected" else range(len(found["settings"]))
        for setting in chosen:
            for seed in found["settings"][setting]["seeds"]:
                wanted[seed["policy"]] = (row,)
    if population.cloning_row is not None or any(row.optimum for row in population.rows):
        wanted |= dict.fromkeys(trained["twins"].values(), population.rows)
    return wanted


def _kept(folder: Path, name: str, digest: str) -> dict[str, Any] | None:
    path = folder / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return found if found.get("policy") == digest else None
