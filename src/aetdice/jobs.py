"""Training as a job in a folder: config in, metrics and checkpoints between, policies and result out."""

import itertools
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np

from aetdice.config import TrainingConfig
from aetdice.errors import InputError
from aetdice.evaluation import (
    Playable,
    evaluate_returns,
    sample_returns,
    standard_objectives,
    utility_threshold,
)
from aetdice.exact import AugmentedSpace, solve
from aetdice.keeping import Report
from aetdice.objectives import Objective, described_objective
from aetdice.policies import ActingPolicy
from aetdice.preparation import algorithm_for, members_of, several
from aetdice.results import versions, write_json
from aetdice.runs import Run, Selection
from aetdice.sources import Source
from aetdice.tracking import Tracker
from aetdice.training import train

CONFIG, RESULT = "config.json", "result.json"
EVALUATION_SEED = 1234
SWEPT = ("alpha", "rho")
"""Options of an objective that take several values, each another objective."""
THRESHOLDED = ("esr", "bsr")
"""Objectives whose F is continued below the environment's threshold."""


@dataclass(frozen=True)
class Job:
    """All that `aetdice train` was told; enough to start it again elsewhere."""

    source: Source
    objective: dict[str, Any]
    """What `described_objective` reads; lists under `alpha` or `rho` are sweeps."""
    algorithm: str = "aetdice"
    sweeps: dict[str, list[float]] = field(default_factory=dict)
    """Values of the algorithm's own hyper-parameters."""
    learning_rate: tuple[float, ...] = (1e-3,)
    seed: tuple[int, ...] = (0,)
    training: TrainingConfig = TrainingConfig()
    episodes: int = 2000
    """Evaluation episodes per policy."""

    def record(self) -> dict[str, Any]:
        return {**asdict(self), "versions": versions()}

    @classmethod
    def read(cls, folder: Path) -> "Job":
        path = folder / CONFIG
        if not path.is_file():
            raise InputError(f"{folder} is not a run: it has no {CONFIG}")
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            content.pop("versions", None)
            training: dict[str, Any] = content["training"]
            content["training"] = TrainingConfig(**{**training, "hidden": tuple(training["hidden"])})
            content["source"] = Source(**content["source"])
            for name in ("learning_rate", "seed"):
                content[name] = tuple(content[name])
            return cls(**content)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path} cannot be read: {error}") from error

    def objectives(self, environment: Playable) -> list[Objective]:
        """The objectives of the sweep: every combination of α and ρ."""
        options = dict(self.objective)
        if options.get("objective") in THRESHOLDED:
            options.setdefault("threshold", utility_threshold(environment))
        swept = {name: several(options.pop(name)) for name in SWEPT if options.get(name) is not None}
        return [
            described_objective(
                {**options, **dict(zip(swept, values, strict=True))},
                len(environment.objectives),
                environment.horizon,
            )
            for values in itertools.product(*swept.values())
        ]


def start(
    job: Job, folder: Path, report: Report | None = None, trackers: tuple[Tracker, ...] = ()
) -> dict[str, Any]:
    """Train, evaluate and write everything to the folder; goes on where an earlier start was cut off."""
    environment = job.source.environment()
    objectives, dataset = job.objectives(environment), job.source.dataset()
    if job.episodes < 1:
        raise InputError(f"at least one evaluation episode is needed, not {job.episodes}")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file, not a folder")
    learner = algorithm_for(job.algorithm, environment.horizon, job.training)
    members_of(
        dataset, objectives, learner, job.sweeps, job.learning_rate, job.seed
    )  # before anything is written
    write_json(folder / CONFIG, job.record())
    run = train(
        dataset,
        objectives,
        algorithm=job.algorithm,
        horizon=environment.horizon,
        beta=job.sweeps.get("beta"),
        expectile=job.sweeps.get("expectile"),
        temperature=job.sweeps.get("temperature"),
        seed=job.seed,
        learning_rate=job.learning_rate,
        config=job.training,
        out=folder,
        report=report,
        trackers=trackers,
    )
    for index, member in enumerate(run.members):
        member.policy.save(folder / f"policy-{index}.npz")
        member.twin.save(folder / f"twin-{index}.npz")
    result = {**summarise(run, environment, job.source.space(), job.episodes), "config": job.record()}
    write_json(folder / RESULT, result)
    return result


def summarise(run: Run, environment: Playable, space: AugmentedSpace | None, episodes: int) -> dict[str, Any]:
    """The result file: every member's scores, and for each objective the seed mean at its setting.

    The first objective's summary stands at the top level as well.
    """
    rows = _score_members(run, environment, episodes)
    summaries = [_summarise(run, selection, rows, space) for selection in run.selections]
    return {
        **summaries[0],
        "units": "the environment's own reward units",
        "by_objective": summaries,
        "members": rows,
        "seconds": run.seconds,
        "versions": run.versions,
    }


def _summarise(
    run: Run, selection: Selection, rows: list[dict[str, Any]], space: AugmentedSpace | None
) -> dict[str, Any]:
    member, chosen = run.members[selection.chosen], [rows[i] for i in run.seeds_of(selection)]
    means = {name: float(np.mean([row[name] for row in chosen])) for name in ("score", "twin_score")}
    exact = None if space is None else solve(space, member.objective, check=False).value
    gap = None if exact is None else exact - means["twin_score"]
    return {
        "objective": member.objective.name,
        "selected": {"index": selection.chosen, "params": member.params, "rule": selection.rule},
        **means,
        "data_score": float(member.objective.score(run.data_returns, jax.random.key(0)).value),
        "exact_score": exact,
        "gap_share": (means["score"] - means["twin_score"]) / gap if gap else None,
        "verdict": member.verdict.words,
        "trusted": member.verdict.trusted,
    }


def _score_members(run: Run, environment: Playable, episodes: int) -> list[dict[str, Any]]:
    twins = {
        member.params["seed"]: sample_returns(member.twin.policy, environment, episodes, EVALUATION_SEED)
        for member in {m.params["seed"]: m for m in run.members}.values()
    }
    rows = []
    for member in run.members:
        objectives = standard_objectives(member.objective, utility_threshold(environment))
        returns = sample_returns(member.policy.policy, environment, episodes, EVALUATION_SEED)
        own, twin = (
            evaluate_returns(sampled, objectives) for sampled in (returns, twins[member.params["seed"]])
        )
        rows.append(
            {
                "params": member.params,
                "score": own["scores"]["trained"]["value"],
                "twin_score": twin["scores"]["trained"]["value"],
                "scores": own["scores"],
                "twin_scores": twin["scores"],
                "evaluation": {key: value for key, value in own.items() if key != "scores"},
                "diagnostics": member.diagnostics,
                "verdict": member.verdict.words,
            }
        )
    return rows


def evaluate(
    folder: Path, episodes: int, seed: int = EVALUATION_SEED, index: int | None = None
) -> dict[str, Any]:
    """Evaluate a policy of a finished run, by default the selected one, its twin beside it."""
    job, result = Job.read(folder), read_result(folder)
    environment = job.source.environment()
    index = result["selected"]["index"] if index is None else index
    count = len(result["members"])
    if not 0 <= index < count:
        raise InputError(f"{folder} has members 0 to {count - 1}, not {index}")
    each = job.objectives(environment)
    objective = each[index // (count // len(each))]
    objectives = standard_objectives(objective, utility_threshold(environment))
    policies = {kind: ActingPolicy.load(folder / f"{kind}-{index}.npz") for kind in ("policy", "twin")}
    exact = next((s["exact_score"] for s in result["by_objective"] if s["objective"] == objective.name), None)
    return {
        "objective": objective.name,
        "objectives": environment.objectives,
        "member": index,
        "seed": seed,
        **{
            kind: evaluate_returns(sample_returns(policy.policy, environment, episodes, seed), objectives)
            for kind, policy in policies.items()
        },
        "exact_score": exact,
        "versions": versions(),
    }


def read_result(folder: Path) -> Mapping[str, Any]:
    path = folder / RESULT
    if not path.is_file():
        raise InputError(
            f"{folder} has no {RESULT}: the run has not ended; continue it with aetdice resume {folder}"
        )
    content: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content
