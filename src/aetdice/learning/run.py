"""A finished training: its members, the setting selected for each objective, and their scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, overload

import jax
import numpy as np
from jaxtyping import Float

from aetdice.config import TrainingConfig
from aetdice.errors import InputError
from aetdice.evaluation import AnyEnvironment, Evaluation, Policy, evaluate_policy, sample_returns
from aetdice.evaluation.scores import EPISODES, SEED, TRAINED, columns_of, score_returns
from aetdice.exact import AugmentedSpace, solve
from aetdice.files import versions, write_json
from aetdice.learning.folder import RESULT, check_folder, save_policies, save_returns, write_request
from aetdice.learning.selection import Candidate, Selection, select
from aetdice.learning.verdict import Verdict
from aetdice.objectives import Objective
from aetdice.progress import tell


@dataclass(eq=False)
class Member:
    """One trained member: its parameters, policies and diagnostics."""

    params: dict[str, Any]
    objective: Objective
    policy: Policy
    twin: Policy
    diagnostics: dict[str, Any]
    verdict: Verdict

    @property
    def acting(self) -> tuple[Policy, Policy]:
        """The policy and its twin."""
        return self.policy, self.twin

    @property
    def setting(self) -> tuple[Any, ...]:
        """What distinguishes it except its objective and its seed."""
        return tuple(value for name, value in self.params.items() if name not in ("objective", "seed"))


class Comparison(NamedTuple):
    """A policy and its cloning twin, evaluated alike."""

    policy: Evaluation
    twin: Evaluation


@dataclass(eq=False)
class Run:
    """The members of a population, and the setting selected for each objective."""

    members: list[Member]
    selections: list[Selection]
    """One per objective, in the order they were given."""
    algorithm: str
    config: TrainingConfig
    horizon: int
    seconds: float
    data_returns: Float[np.ndarray, "episodes m"]
    request: dict[str, Any] = field(default_factory=dict)
    """What `train` was asked for, as its config file has it."""
    chosen: dict[str, Any] = field(default_factory=dict)
    """The settings that were read from the data."""
    versions: dict[str, str] = field(default_factory=versions)
    estimates: list[dict[str, Any]] = field(default_factory=list)
    """One per objective, of the selected policy and its twin, where episodes were kept for it."""

    @property
    def selected(self) -> Member:
        """The member selected for the first, usually the only objective."""
        return self.members[self.selections[0].chosen]

    @property
    def rule(self) -> str:
        """By what it was selected."""
        return self.selections[0].rule

    @property
    def policy(self) -> Policy:
        """The selected policy."""
        return self.selected.policy

    @property
    def twin(self) -> Policy:
        """Plain behaviour cloning with the same network, data and seed."""
        return self.selected.twin

    @property
    def verdict(self) -> Verdict:
        """Whether to trust the selected policy, and why."""
        return self.selected.verdict

    def member(self, index: int | None = None) -> Member:
        """A member by its number, or the selected one."""
        count = len(self.members)
        if index is not None and not 0 <= index < count:
            raise InputError(f"the run has members 0 to {count - 1}, not {index}")
        return self.selected if index is None else self.members[index]

    def evaluate(
        self,
        env: AnyEnvironment,
        episodes: int = EPISODES,
        seed: int = SEED,
        *,
        member: int | None = None,
        greedy: bool = False,
    ) -> Comparison:
        """A member's policy, by default the selected one's, and its twin in an environment, sampled."""
        one = self.member(member)
        return Comparison(
            *(
                evaluate_policy(policy, env, episodes, seed, objective=one.objective, greedy=greedy)
                for policy in one.acting
            )
        )

    def seeds_of(self, selection: Selection) -> list[int]:
        """The members of a selected setting: one per seed."""
        chosen = self.members[selection.chosen]
        return [
            i
            for i, member in enumerate(self.members)
            if (member.objective.name, member.setting) == (chosen.objective.name, chosen.setting)
        ]

    def save(self, folder: Path | str, result: Mapping[str, Any] | None = None) -> None:
        """Write everything about the run to a folder, which `load_run` and the command line read.

        `result` is what `summarise` makes of an evaluation; without one the result has no scores.
        """
        folder = Path(folder)
        check_folder(folder)
        write_request(folder, self.request)
        for index, member in enumerate(self.members):
            save_policies(folder, index, member.policy, member.twin)
        save_returns(folder, self.data_returns)
        write_json(folder / RESULT, result or summarise(self))


def select_members(members: Sequence[Member]) -> list[Selection]:
    """For each objective the best setting."""
    return select([Candidate(m.objective.name, m.setting, m.diagnostics) for m in members])


@overload
def evaluate(
    what: Run, env: AnyEnvironment, episodes: int = EPISODES, seed: int = SEED, *, greedy: bool = False
) -> Comparison: ...


@overload
def evaluate(
    what: Policy,
    env: AnyEnvironment,
    episodes: int = EPISODES,
    seed: int = SEED,
    *,
    greedy: bool = False,
    objective: Objective | None = None,
) -> Evaluation: ...


def evaluate(
    what: Run | Policy,
    env: AnyEnvironment,
    episodes: int = EPISODES,
    seed: int = SEED,
    *,
    greedy: bool = False,
    objective: Objective | None = None,
) -> Comparison | Evaluation:
    """How good a run's selected policy (with its twin) or a single policy is in an environment.

    `objective` stands in for the one that a policy was trained for, where no file could hold it.
    """
    if isinstance(what, Run):
        return what.evaluate(env, episodes, seed, greedy=greedy)
    if isinstance(what, Policy):
        return evaluate_policy(what, env, episodes, seed, objective=objective, greedy=greedy)
    raise InputError(
        f"a Run or a Policy is evaluated, as train, load_run or load_policy give them; not {what!r}"
    )


def gap_share(score: float, twin: float, best: float) -> float | None:
    """(score - twin) / (best - twin): how much of the way from cloning to the best is closed."""
    return (score - twin) / (best - twin) if best != twin else None


def summarise(
    run: Run,
    env: AnyEnvironment | None = None,
    space: AugmentedSpace | None = None,
    episodes: int = EPISODES,
) -> dict[str, Any]:
    """The result file: diagnostics and scores of every member, and for each objective the chosen setting.

    A setting's scores are means over its seeds. The first objective's stand at the top level as
    well. Without an environment there are no scores.
    """
    rows = _rows(run) if env is None else _scored_rows(run, env, episodes)
    summaries = [_summary(run, selection, rows, space) for selection in run.selections]
    for summary, found in zip(summaries, run.estimates, strict=False):
        summary["estimate"] = found
    return {
        **summaries[0],
        "units": "the environment's own reward units",
        "by_objective": summaries,
        "chosen": run.chosen,
        "members": rows,
        "seconds": run.seconds,
        "versions": run.versions,
    }


def _rows(run: Run) -> list[dict[str, Any]]:
    return [
        {
            "params": member.params,
            "diagnostics": member.diagnostics,
            "verdict": member.verdict.words,
            "trusted": member.verdict.trusted,
        }
        for member in run.members
    ]


def _scored_rows(run: Run, env: AnyEnvironment, episodes: int) -> list[dict[str, Any]]:
    """The rows with scores; a twin that members share is rolled out once."""
    first = {member.params["seed"]: member for member in reversed(run.members)}
    twins = {seed: sample_returns(member.twin, env, episodes, SEED) for seed, member in first.items()}
    rows = []
    for member, row in zip(run.members, _rows(run), strict=True):
        columns = columns_of(env, member.objective)
        returns = sample_returns(member.policy, env, episodes, SEED)
        own = score_returns(returns, columns).record()
        twin = score_returns(twins[member.params["seed"]], columns).record()
        rows.append(
            row
            | {
                "score": own["scores"][TRAINED]["value"],
                "twin_score": twin["scores"][TRAINED]["value"],
                "scores": own.pop("scores"),
                "twin_scores": twin["scores"],
                "evaluation": own,
            }
        )
        tell("evaluation", len(rows), len(run.members))
    return rows


def _summary(
    run: Run, selection: Selection, rows: list[dict[str, Any]], space: AugmentedSpace | None
) -> dict[str, Any]:
    member, chosen = run.members[selection.chosen], [rows[i] for i in run.seeds_of(selection)]
    scores = ("score", "twin_score") if "score" in chosen[0] else ()
    means: dict[str, float | None] = {"score": None, "twin_score": None}
    means |= {name: float(np.mean([row[name] for row in chosen])) for name in scores}
    exact = None if space is None else solve(space, member.objective, check=False).value
    score, twin = means["score"], means["twin_score"]
    known = score is not None and twin is not None and exact is not None
    return {
        "objective": member.objective.name,
        "selected": {"index": selection.chosen, "params": member.params, "rule": selection.rule},
        "selected_with": "offline",
        **means,
        "data_score": float(member.objective.score(run.data_returns, jax.random.key(0)).value),
        "exact_score": exact,
        "gap_share": gap_share(score, twin, exact) if known else None,  # type: ignore[arg-type]
        "verdict": member.verdict.words,
        "trusted": member.verdict.trusted,
    }
