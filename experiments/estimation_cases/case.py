"""A case: a policy under an objective, the log to estimate it from, and what is true."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from aetdice.data import Episodes
from aetdice.estimation.acting import Acting, MixtureActing, acting_of
from aetdice.estimation.tabular_acting import TabularActing
from aetdice.evaluation import Policy
from aetdice.evaluation.tabulation import tabulated
from aetdice.exact import AugmentedSpace, TabularPolicy, solve
from aetdice.objectives import Objective, in_float64

KEPT = 0.1
"""Share of the episodes that no policy has seen."""


class Case(NamedTuple):
    """What is estimated, from what, and what it should be."""

    family: str
    problem: str
    policy: str
    label: str
    acting: Acting
    behaviour: Acting | None
    log: Episodes
    seen: Episodes
    objective: Objective
    horizon: int
    truth: Callable[[], float]
    gap: Callable[[], float]
    """Between the behaviour's twin and the best policy known."""


class Half(MixtureActing):
    """Half of the episodes by one policy, half by another."""

    def __init__(self, one: Policy, other: Policy) -> None:
        self.parts = one, other
        self.chances = np.full(2, 0.5)
        self.courses = [acting_of(one), acting_of(other)]
        self._kept = np.zeros(0, int)


AnyPolicy: TypeAlias = Policy | TabularPolicy | Acting


class Candidate(NamedTuple):
    """A policy, and the objectives it is estimated under."""

    name: str
    policy: AnyPolicy
    labels: Sequence[str]


def parts(data: Episodes, seed: int) -> tuple[Episodes, Episodes]:
    """What is learned from, and what is kept."""
    order = np.random.default_rng(seed).permutation(len(data))
    count = round(KEPT * len(data))
    return data.select(np.sort(order[count:])), data.select(np.sort(order[:count]))


def acting(policy: AnyPolicy) -> Acting:
    if isinstance(policy, TabularPolicy):
        return TabularActing(policy)
    return acting_of(policy) if isinstance(policy, Policy) else policy


class Truth:
    """J of policies, exact on an augmented space or from sampled returns; each is worked out once."""

    def __init__(
        self, space: AugmentedSpace | None = None, returns: Callable[[Any], np.ndarray] | None = None
    ) -> None:
        self.space, self.returns = space, returns
        self.known: dict[int, Any] = {}

    def __call__(self, policy: AnyPolicy, objective: Objective) -> float:
        return float(in_float64(objective.aggregation)(self.utilities(policy, objective)))

    def utilities(self, policy: AnyPolicy, objective: Objective) -> np.ndarray:
        """E[F(R)]."""
        if isinstance(policy, Half):
            return np.mean([self.utilities(part, objective) for part in policy.parts], axis=0)
        if id(policy) not in self.known:
            self.known[id(policy)] = policy, self._found(policy)
        found = self.known[id(policy)][1]
        if self.space is not None:
            return np.asarray(found.expected_utilities(objective.utility))
        return np.asarray(in_float64(objective.expected_utilities)(found))

    def best(self, objective: Objective, policies: Iterable[AnyPolicy]) -> float:
        """The optimum, or the best of some policies."""
        if self.space is not None:
            return float(solve(self.space, objective, check=False).value)
        return max(self(policy, objective) for policy in policies)

    def _found(self, policy: Any) -> Any:
        if self.space is None:
            assert self.returns is not None
            return self.returns(policy)
        table = policy if isinstance(policy, TabularPolicy) else tabulated(policy.network, self.space)
        return table.outcomes()


def cases_of(
    family: str,
    problem: str,
    parts_of_data: tuple[Episodes, Episodes],
    candidates: Sequence[Candidate],
    objectives: dict[str, Objective],
    horizon: int,
    truth: Truth,
) -> Iterator[Case]:
    """Each policy under its objectives; the first is the twin."""
    training, log = parts_of_data
    twin = candidates[0].policy
    for name, policy, labels in candidates:
        for label in labels:
            rivals = [one.policy for one in candidates if label in one.labels]
            objective = objectives[label]
            yield Case(
                family=family,
                problem=problem,
                policy=name,
                label=label,
                acting=acting(policy),
                behaviour=acting(twin),
                log=log,
                seen=training,
                objective=objective,
                horizon=horizon,
                truth=lambda policy=policy, o=objective: truth(policy, o),
                gap=lambda o=objective, r=rivals: truth.best(o, r) - truth(twin, o),
            )
