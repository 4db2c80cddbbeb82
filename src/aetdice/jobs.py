"""Training as a job in a folder: config in, metrics and checkpoints between, policies and result out."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from aetdice.envs import Environment
from aetdice.errors import InputError
from aetdice.evaluation import evaluate_returns, sample_returns, standard_objectives
from aetdice.exact import solve
from aetdice.objectives import Objective, named_objective, written_objective
from aetdice.policies import ActingPolicy
from aetdice.preparation import TrainingConfig, members_of
from aetdice.results import versions, write_json
from aetdice.runs import Member, Run
from aetdice.sources import Source
from aetdice.training import Report, train

CONFIG, RESULT = "config.json", "result.json"
EVALUATION_SEED = 1234


@dataclass(frozen=True)
class Job:
    """All that `aetdice train` was told; enough to start it again elsewhere."""

    source: Source
    objective: dict[str, Any]
    """`name` and options, or `utility` and `aggregation`; a list of values is a sweep."""
    beta: tuple[float, ...]
    learning_rate: tuple[float, ...]
    seed: tuple[int, ...]
    training: TrainingConfig
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
            training: dict[str, Any] = {
                k: tuple(v) if isinstance(v, list) else v for k, v in content["training"].items()
            }
            return cls(
                source=Source(**content["source"]),
                objective=content["objective"],
                beta=tuple(content["beta"]),
                learning_rate=tuple(content["learning_rate"]),
                seed=tuple(content["seed"]),
                training=TrainingConfig(**training),
                episodes=content["episodes"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path} cannot be read: {error}") from error

    def objectives(self, environment: Environment) -> list[Objective]:
        """The objectives of the sweep."""
        count, horizon = len(environment.objectives), environment.horizon
        options = dict(self.objective)
        if "utility" in options:
            return [written_objective(**options, objectives=count, horizon=horizon)]
        name = options.pop("name")
        swept = next(
            (
                key
                for key, value in options.items()
                if key != "weights" and isinstance(value, Sequence) and not isinstance(value, str)
            ),
            None,
        )
        if swept is None:
            return [named_objective(name, options)]
        return [named_objective(name, {**options, swept: value}) for value in options[swept]]


def start(job: Job, folder: Path, report: Report | None = None) -> dict[str, Any]:
    """Train, evaluate and write everything to the folder; goes on where an earlier start was cut off."""
    environment = job.source.environment()
    objectives, dataset = job.objectives(environment), job.source.dataset()
    if job.episodes < 1:
        raise InputError(f"at least one evaluation episode is needed, not {job.episodes}")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file, not a folder")
    members_of(dataset, objectives, job.beta, job.learning_rate, job.seed)  # before anything is written
    write_json(folder / CONFIG, job.record())
    run = train(
        dataset,
        objectives,
        horizon=environment.horizon,
        beta=job.beta,
        seed=job.seed,
        learning_rate=job.learning_rate,
        config=job.training,
        out=folder,
        report=report,
    )
    for index, member in enumerate(run.members):
        member.policy.save(folder / f"policy-{index}.npz")
        member.twin.save(folder / f"twin-{index}.npz")
    result = summarise(job, run, environment)
    write_json(folder / RESULT, result)
    return result


def summarise(job: Job, run: Run, environment: Environment) -> dict[str, Any]:
    """The result file: every member's scores, and the seed mean at the selected setting."""
    rows = [_score(member, environment, job.episodes) for member in run.members]
    chosen = [rows[run.members.index(member)] for member in run.chosen()]
    objective = run.members[run.selected].objective
    exact = solve(job.source.space(), objective, check=False)
    data = float(objective.score(run.data_returns, jax.random.key(0)).value)
    means = {name: float(np.mean([row[name] for row in chosen])) for name in ("score", "twin_score")}
    gap = exact.value - means["twin_score"]
    return {
        "objective": objective.name,
        "units": "the environment's own reward units",
        "members": rows,
        "selected": {"index": run.selected, "params": run.members[run.selected].params, "rule": run.rule},
        **means,
        "data_score": data,
        "exact_score": exact.value,
        "gap_share": (means["score"] - means["twin_score"]) / gap if gap else 0.0,
        "verdict": run.verdict.words,
        "trusted": run.verdict.trusted,
        "seconds": run.seconds,
        "config": job.record(),
        "versions": run.versions,
    }


def _score(member: Member, environment: Environment, episodes: int) -> dict[str, Any]:
    objectives = standard_objectives(member.objective)
    own = evaluate_returns(
        sample_returns(member.policy.policy, environment, episodes, EVALUATION_SEED), objectives
    )
    twin = evaluate_returns(
        sample_returns(member.twin.policy, environment, episodes, EVALUATION_SEED), objectives
    )
    return {
        "params": member.params,
        "score": own["scores"]["trained"]["value"],
        "twin_score": twin["scores"]["trained"]["value"],
        "scores": own["scores"],
        "twin_scores": twin["scores"],
        "evaluation": {key: value for key, value in own.items() if key != "scores"},
        "diagnostics": member.diagnostics,
        "verdict": member.verdict.words,
    }


def evaluate(folder: Path, episodes: int, seed: int = EVALUATION_SEED) -> dict[str, Any]:
    """Evaluate the selected policy of a finished run, its twin beside it."""
    job = Job.read(folder)
    result = read_result(folder)
    environment = job.source.environment()
    index = result["selected"]["index"]
    objective = _objective_of(job, environment, index)
    objectives = standard_objectives(objective)
    policies = {kind: ActingPolicy.load(folder / f"{kind}-{index}.npz") for kind in ("policy", "twin")}
    return {
        "objective": objective.name,
        "seed": seed,
        **{
            kind: evaluate_returns(sample_returns(policy.policy, environment, episodes, seed), objectives)
            for kind, policy in policies.items()
        },
        "exact_score": result["exact_score"],
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


def _objective_of(job: Job, environment: Environment, index: int) -> Objective:
    objectives = job.objectives(environment)
    return objectives[index // (len(job.beta) * len(job.learning_rate) * len(job.seed))]
