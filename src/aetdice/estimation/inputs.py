"""What can be estimated from what: policies, episodes and objectives that fit each other."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Shaped

from aetdice.data import Episodes, transform_episodes
from aetdice.data.recoding import recoded
from aetdice.errors import InputError
from aetdice.estimation.acting import Acting
from aetdice.estimation.recording import Recording
from aetdice.evaluation import Policy
from aetdice.networks import Categorical
from aetdice.objectives import Objective
from aetdice.objectives.checks import check_shapes

MOST_NEW = 0.1
"""Of the observations, that have values which a policy was never shown: with more, it is of other data."""


def check_kinds(
    policies: Sequence[Any], datasets: Sequence[Any], objective: Any, horizon: Any, level: Any
) -> None:
    """`InputError` for what is no policy, no dataset, no objective or no number."""
    for policy in policies:
        if not isinstance(policy, Policy | Acting):
            raise InputError(
                f"a policy is what load_policy gives, or a run's run.policy; not {type(policy).__name__}"
            )
    for dataset in datasets:
        if not isinstance(dataset, Episodes):
            raise InputError(
                f"a dataset is Episodes, as load_dataset gives them; not {type(dataset).__name__}"
            )
    if objective is not None and not isinstance(objective, Objective):
        raise InputError(
            f"an objective is made by esr(), ser(), bsr(0.5), … or Objective(F, G); not {objective!r}"
        )
    if horizon is not None and not isinstance(horizon, int | np.integer):
        raise InputError(f"the horizon is a whole number of steps, not {horizon!r}")
    if not isinstance(level, int | float | np.floating) or not 0 < level < 1:
        raise InputError(f"the level of an interval lies between 0 and 1, not at {level}")


def recorded(
    policy: Policy | Acting,
    twin: Policy | Acting | None,
    dataset: Episodes,
    objective: Objective | None,
    horizon: int | None,
) -> Recording:
    """The episodes as the policy would have seen them, under an objective that fits."""
    if isinstance(policy, Policy):
        objective = objective or policy.objective
        horizon = policy.horizon if horizon is None else horizon
    for each in (policy, twin):
        if isinstance(each, Policy):
            _check_horizon(each, horizon)
            _check_fits(each, fitted := _coded(each, dataset))
            if each is policy:
                dataset = fitted
    dataset = dataset.settled()
    if isinstance(policy, Policy) and policy.transform is not None:
        dataset = transform_episodes(dataset, policy.transform)
    if objective is None:
        raise InputError("no file holds what this policy was trained for: give estimate its objective=…")
    check_shapes(objective, np.zeros(len(dataset.objectives)))
    found = Recording.of(dataset, objective, int(dataset.lengths.max()) if horizon is None else horizon)
    for values in (found.steps.zero_utility, found.steps.transformed_rewards):
        if not np.all(np.isfinite(values)):
            raise InputError("F is not finite at all that episodes of the data had earned on their way")
    return found


def check_alike(one: Episodes, other: Episodes) -> None:
    """`InputError` unless both datasets are of one kind."""
    _check_names("the dataset", one.objectives, "what was seen", other.objectives)
    for what, here, there in (
        ("observations", one.observations, other.observations),
        ("actions", one.actions, other.actions),
    ):
        if _kind(here) != _kind(there):
            raise InputError(f"the dataset has {_kind(here)} {what}, what was seen {_kind(there)} ones")


def _kind(values: Shaped[np.ndarray, "rows *s"]) -> str:
    """In words."""
    size = int(np.prod(values.shape[1:]))
    number = "whole" if np.issubdtype(values.dtype, np.integer) else "fractional"
    return f"{size}-dimensional {number}" if values.ndim > 1 else number


def _coded(policy: Policy, dataset: Episodes) -> Episodes:
    """With the policy's own numbers for the data's words."""
    if policy.coding is None or dataset.coding is None:
        return dataset
    return recoded(dataset, policy.coding, "the policy")


def _check_horizon(policy: Policy, horizon: int | None) -> None:
    if horizon is not None and horizon > policy.horizon:
        raise InputError(f"the policy was trained for {policy.horizon} steps, not for a horizon of {horizon}")


def _check_fits(policy: Policy, dataset: Episodes) -> None:
    encoder = policy.network.encoder
    rows = dataset.observations.reshape(len(dataset.observations), -1)
    if rows.shape[1] != len(encoder.centre):
        raise InputError(
            f"the policy was trained on observations of {len(encoder.centre)} entries, the data has "
            f"{rows.shape[1]}"
        )
    if policy.transform is None and len(dataset.objectives) != len(encoder.accrued_range):
        raise InputError(
            f"the policy knows {len(encoder.accrued_range)} objectives, the data {len(dataset.objectives)}"
        )
    _check_names("the policy", policy.details.get("objectives", ()), "the data", dataset.objectives)
    own = None if policy.coding is None else policy.coding.record()
    if dataset.coding is not None and own != dataset.coding.record():
        raise InputError("the data's columns or categories are not those that the policy was trained with")
    _check_actions(policy, dataset)
    if encoder.sizes is not None:
        _check_values(encoder.sizes, rows)


def _check_actions(policy: Policy, dataset: Episodes) -> None:
    head, shape = policy.network.head, dataset.actions.shape[1:]
    discrete = not shape and np.issubdtype(dataset.actions.dtype, np.integer)
    if isinstance(head, Categorical) != discrete:
        words = ("discrete", "continuous") if isinstance(head, Categorical) else ("continuous", "discrete")
        raise InputError(f"the policy has {words[0]} actions, the data {words[1]} ones")
    if not isinstance(head, Categorical) and int(np.prod(shape)) != np.size(head.low):  # type: ignore[attr-defined]
        raise InputError(
            f"the policy has actions of {np.size(head.low)} entries, the data of {int(np.prod(shape))}"  # type: ignore[attr-defined]
        )


def _check_values(sizes: tuple[int, ...], rows: Shaped[np.ndarray, "frames o"]) -> None:
    """Indicators know whole numbers, and those that were there in training."""
    if not np.issubdtype(rows.dtype, np.integer):
        raise InputError("the policy was trained on observations of whole numbers, those of the data are not")
    new = (rows < 0) | (rows >= np.array(sizes))
    share = float(new.any(axis=1).mean())
    if share > MOST_NEW:
        column = int(np.argmax(new.any(axis=0)))
        raise InputError(
            f"entry {column} of the policy's observations is a whole number from 0 to {sizes[column] - 1}, "
            f"but in {share:.0%} of the data's it is {rows[new[:, column], column][0]} or the like"
        )


def _check_names(one: str, names: Sequence[str], other: str, others: Sequence[str]) -> None:
    """Numbered names say nothing; others must be the same."""
    numbered = [f"r{i}" for i in range(len(names))]
    if list(names) == list(others) or not names:
        return
    if sorted(names) != sorted(others) and numbered in (list(names), list(others)):
        return
    raise InputError(f"the objectives of {one} are {', '.join(names)}, those of {other} {', '.join(others)}")
