"""What a page is made of: a run, what its folder says, and episodes sampled in its environment."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from aetdice.datasets import environment_of
from aetdice.evaluation import AnyEnvironment, sample_returns, standard_objectives, utility_threshold
from aetdice.evaluation.scores import EPISODES, SEED, TRAINED
from aetdice.learning.folder import read_result
from aetdice.learning.loading import load_run
from aetdice.learning.run import Run
from aetdice.objectives import Objective
from aetdice.page.curves import Curves, read_curves
from aetdice.progress import Progress

Returns = Float[np.ndarray, "episodes m"]
COMPARED = ("ESR", "BSR[alpha=0.5]", "SER")
"""Of the standard objectives, those that every table has beside the trained one."""


@dataclass(frozen=True, eq=False)
class Gathered:
    """One run."""

    name: str
    folder: Path | None
    run: Run
    names: tuple[str, ...]
    """Of the objectives, as the policies see them."""
    optima: dict[str, float]
    """By an objective's full name, where they are known."""
    standard: Mapping[str, Objective]
    policies: list[Returns] | None
    """Of every member's sampled episodes; None without an environment."""
    twins: list[Returns] | None
    curves: Curves

    def columns(self, member: int) -> dict[str, Objective]:
        """What a member is scored under, the trained objective first."""
        return {TRAINED: self.run.members[member].objective, **self.standard}


def gather(what: Run | Path | str, episodes: int | None = None, progress: Progress | None = None) -> Gathered:
    """A run by its folder, or one in memory, which has neither optima nor curves."""
    folder = None if isinstance(what, Run) else Path(what)
    run = what if isinstance(what, Run) else load_run(what)
    result = {} if folder is None else read_result(folder)
    env = _environment(run)
    count = episodes or run.request["notes"].get("episodes", EPISODES)
    policies, twins = (None, None) if env is None else _sample(run, env, count, progress)
    standard = standard_objectives(1.0 if env is None else utility_threshold(env))
    return Gathered(
        name=run.algorithm if folder is None else folder.resolve().name,
        folder=folder,
        run=run,
        names=_names(run, env),
        optima={
            each["objective"]: each["exact_score"]
            for each in result.get("by_objective", [])
            if each.get("exact_score") is not None
        },
        standard={name: standard[name] for name in COMPARED},
        policies=policies,
        twins=twins,
        curves={} if folder is None else read_curves(folder, len(run.members)),
    )


def _environment(run: Run) -> AnyEnvironment | None:
    origin: Mapping[str, Any] | None = run.request["dataset"]["origin"]
    return environment_of(origin) if origin is not None and "env" in origin else None


def _names(run: Run, env: AnyEnvironment | None) -> tuple[str, ...]:
    """The log's own; version 0.1 did not keep them."""
    names = run.request["dataset"].get("objectives") or (() if env is None else env.objectives)
    transform = run.policy.transform
    return tuple(names if transform is None else transform.names(tuple(names)))


def _sample(
    run: Run, env: AnyEnvironment, episodes: int, progress: Progress | None
) -> tuple[list[Returns], list[Returns]]:
    """As `aetdice train` evaluates, with the same seed; a twin that members share is rolled out once."""
    policies, twins = list[Returns](), dict[Any, Returns]()
    for index, member in enumerate(run.members):
        policies.append(sample_returns(member.policy, env, episodes, SEED))
        seed = member.params["seed"]
        if seed not in twins:
            twins[seed] = sample_returns(member.twin, env, episodes, SEED)
        if progress is not None:
            progress("sampling", index + 1, len(run.members), {})
    return policies, [twins[member.params["seed"]] for member in run.members]
