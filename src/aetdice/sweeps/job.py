"""One job in its folder: a population is trained and scored; what was cut off goes on."""

import json
import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from aetdice.config import TrainingConfig
from aetdice.data import Episodes
from aetdice.datasets import dataset_of, environment_of, space_of
from aetdice.engines.task import attempts_in
from aetdice.errors import InputError
from aetdice.estimation import estimate
from aetdice.exact import AugmentedSpace
from aetdice.files import write_json
from aetdice.learning.folder import RESULT
from aetdice.learning.inputs import set_aside
from aetdice.learning.run import Run, summarise
from aetdice.learning.training import train
from aetdice.objectives import objective_from
from aetdice.sweeps.jobs import JOBS, ROWS, Job, job_from


def do_job(record: Mapping[str, Any], own: Path) -> None:
    """Train and score a population; afterwards its folder has `rows.json`, written whole and once."""
    started = time.perf_counter()
    rows = _rows(job_from(record), own)
    write_json(own / ROWS, {"rows": rows, "seconds": time.perf_counter() - started})


def read_rows(folder: Path, job: Job) -> dict[str, Any] | None:
    """What a job found, with the number of times it was begun; None while it is not done."""
    path = folder / JOBS / job.id / ROWS
    if not path.is_file():
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        rows, seconds = found["rows"], float(found["seconds"])
    except (ValueError, LookupError, TypeError) as error:
        raise InputError(f"{path} cannot be read ({error!r}): delete it to do the job again") from error
    times, host = attempts_in(path.parent)
    return {"rows": rows, "seconds": seconds, "host": host, "attempts": times}


def finished_jobs(folder: Path) -> list[Path]:
    """The run folders of a sweep's jobs that are done."""
    return sorted(path.parent for path in (folder / JOBS).glob(f"*/{ROWS}"))


def _rows(job: Job, folder: Path) -> list[dict[str, Any]]:
    dataset = _dataset(json.dumps(job.origin))
    if dataset.sha256 != job.sha256:
        raise InputError(
            f"the data of {job.dataset} is not what the sweep was planned with: put it back as it was, or "
            "sweep it into another folder"
        )
    run = train(
        dataset,
        [objective_from(entry["record"]) for entry in job.objectives],
        algorithm=job.algorithm,
        horizon=job.horizon,
        seed=job.seeds,
        config=TrainingConfig.from_record(job.settings),
        out=folder,
        progress=False,
        notes={"sweep": job.id, "episodes": job.episodes},
        **job.values,  # type: ignore[arg-type]
    )
    result = _result(run, job)
    write_json(folder / RESULT, {**result, "config": run.request})
    summaries = {each["objective"]: each for each in result["by_objective"]}
    scored = zip(run.members, result["members"], _estimates(run, dataset), strict=True)
    return [
        {
            **_facts(job, index, member.params),
            "objective": member.objective.short_name,
            "definition": member.objective.name,
            **{name: summaries[member.objective.name][name] for name in ("data_score", "exact_score")},
            **_scores(row),
            **estimated,
            "verdict": member.verdict.words,
            "trusted": member.verdict.trusted,
            "diagnostics": member.diagnostics,
            "versions": run.versions,
        }
        for index, (member, row, estimated) in enumerate(scored)
    ]


def _result(run: Run, job: Job) -> dict[str, Any]:
    """With scores, where there is an environment."""
    if "env" not in job.origin:
        return summarise(run)
    return summarise(run, environment_of(job.origin), _space(json.dumps(job.origin)), job.episodes)


def _facts(job: Job, index: int, params: dict[str, Any]) -> dict[str, Any]:
    return {
        "job": job.id,
        "member": index,
        "dataset": job.dataset,
        "data_sha256": job.sha256,
        "algorithm": job.algorithm,
        "horizon": job.horizon,
        **{name: value for name, value in params.items() if name not in ("objective", "algorithm")},
        "settings": job.varied,
    }


def _scores(row: dict[str, Any]) -> dict[str, Any]:
    """Of the policy and of its twin under the objective that they were trained for."""
    return {
        name + end: row[f"{name}s"]["trained"][of]
        for name in ("score", "twin_score")
        if name in row
        for end, of in (("", "value"), ("_low", "low"), ("_high", "high"))
    }


def _estimates(run: Run, dataset: Episodes) -> list[dict[str, Any]]:
    """Of every member, by the episodes that were kept for it; nothing where none were."""
    seen, kept = set_aside(dataset, run.config)
    if kept is None:
        return [{} for _ in run.members]
    known = {run.selections[i].chosen: found["policy"] for i, found in enumerate(run.estimates)}
    found = []
    for index, member in enumerate(run.members):
        record = known.get(index)
        if record is None:
            made = estimate(
                member.policy, kept, member.objective, twin=member.twin, seen=seen, horizon=run.horizon
            )
            record = made.record()
        of = {"estimate": "value", "estimate_low": "low", "estimate_high": "high"}
        row = {name: record[key] for name, key in of.items()}
        found.append({**row, "support": record["support"]["word"]})
    return found


@lru_cache(maxsize=1)
def _dataset(origin: str) -> Episodes:
    return dataset_of(json.loads(origin))


@lru_cache(maxsize=1)
def _space(origin: str) -> AugmentedSpace | None:
    return space_of(environment_of(json.loads(origin)))
