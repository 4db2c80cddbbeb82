"""A finished training: its members, the verdict on each, and the rule that selects one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from aetdice.algorithms.algorithm import Remedies
from aetdice.evaluation import Playable, evaluate_returns, sample_returns, standard_objectives
from aetdice.objectives import Objective
from aetdice.policies import ActingPolicy
from aetdice.results import versions

MOST_VIOLATION = 0.05
"""Of mass, at any time step."""
MOST_IMBALANCE = 0.6
"""Of the flow through the states, as random functions of the state see it."""
LEAST_SAMPLE_SIZE = 0.02
LEAST_DISTANCE = 0.02

RULE = (
    "largest ratio-weighted J on held-out episodes, averaged over seeds, among settings with mass conserved "
    f"within {MOST_VIOLATION:g}, flow balanced within {MOST_IMBALANCE:g} and an effective sample size of at "
    f"least {LEAST_SAMPLE_SIZE:.0%}"
)
ONLY = "the only setting"
FIRST = "the first setting given: nothing but the environment can tell the settings of this algorithm apart"


class Verdict(NamedTuple):
    """Whether to trust a member, in plain words."""

    trusted: bool
    words: str


@dataclass(eq=False)
class Member:
    """One trained member: its parameters, policies and diagnostics."""

    params: dict[str, Any]
    objective: Objective
    policy: ActingPolicy
    twin: ActingPolicy
    diagnostics: dict[str, Any]
    verdict: Verdict


class Selection(NamedTuple):
    """The setting chosen for one objective."""

    chosen: int
    """The index of the member with the setting's first seed."""
    rule: str


@dataclass(eq=False)
class Run:
    """The members of a population, and the setting selected for each objective."""

    members: list[Member]
    selections: list[Selection]
    """One per objective, in the order they were given."""
    algorithm: str
    config: Any
    horizon: int
    seconds: float
    data_returns: Float[np.ndarray, "episodes m"]
    versions: dict[str, str] = field(default_factory=versions)

    @property
    def selected(self) -> Member:
        """The member selected for the first, usually the only objective."""
        return self.members[self.selections[0].chosen]

    @property
    def rule(self) -> str:
        """By what it was selected."""
        return self.selections[0].rule

    @property
    def policy(self) -> ActingPolicy:
        """The selected policy."""
        return self.selected.policy

    @property
    def twin(self) -> ActingPolicy:
        """Plain behaviour cloning with the same network, data and seed."""
        return self.selected.twin

    @property
    def verdict(self) -> Verdict:
        return self.selected.verdict

    def evaluate(self, env: Playable, episodes: int = 2000, seed: int = 1234) -> dict[str, Any]:
        """The selected policy and its twin in an environment: sampled, under every standard objective."""
        objectives = standard_objectives(self.selected.objective)

        def returns(acting: ActingPolicy) -> Float[np.ndarray, "episodes m"]:
            return sample_returns(acting.policy, env, episodes, seed, transform=acting.transform)

        return {
            name: evaluate_returns(returns(acting), objectives)
            for name, acting in (("policy", self.policy), ("twin", self.twin))
        }

    def seeds_of(self, selection: Selection) -> list[int]:
        """The members of a selected setting: one per seed."""
        setting = setting_of(self.members[selection.chosen])
        return [i for i, member in enumerate(self.members) if setting_of(member) == setting]


def setting_of(member: Member) -> tuple[Any, ...]:
    """What distinguishes a member except its seed; a short name does not tell all of an objective."""
    own = (value for name, value in member.params.items() if name != "seed")
    return (member.objective.name, *own)


def select(members: Sequence[Member]) -> list[Selection]:
    """For each objective the best setting, by a rule that never sees the environment."""
    by_objective: dict[str, dict[tuple[Any, ...], list[int]]] = {}
    for index, member in enumerate(members):
        settings = by_objective.setdefault(member.objective.name, {})
        settings.setdefault(setting_of(member), []).append(index)
    return [_select(members, list(settings.values())) for settings in by_objective.values()]


def _select(members: Sequence[Member], settings: list[list[int]]) -> Selection:
    if len(settings) == 1:
        return Selection(settings[0][0], ONLY)
    if "held_out_claimed_value" not in members[settings[0][0]].diagnostics:
        return Selection(settings[0][0], FIRST)

    def mean(name: str, rows: list[int]) -> float:
        return float(np.mean([members[i].diagnostics[name] for i in rows]))

    sound = [
        rows
        for rows in settings
        if mean("mass_violation", rows) <= MOST_VIOLATION
        and mean("flow_violation", rows) <= MOST_IMBALANCE
        and mean("effective_sample_size", rows) >= LEAST_SAMPLE_SIZE
    ]
    if not sound:
        rows = min(settings, key=lambda rows: mean("flow_violation", rows))
        return Selection(rows[0], "no setting passed the rule; the one whose flow is balanced best")
    return Selection(max(sound, key=lambda rows: mean("held_out_claimed_value", rows))[0], RULE)


def judge(diagnostics: Mapping[str, Any], remedies: Remedies | None) -> Verdict:
    """Read a member's diagnostics: converged, different from its twin, ratios not collapsed."""
    if remedies is None:
        return Verdict(True, "This is plain cloning.")
    findings = [
        *_convergence(diagnostics),
        *_spread(diagnostics, remedies.closer),
        _difference(diagnostics, remedies.further),
    ]
    return Verdict(all(good for good, _ in findings), " ".join(words for _, words in findings))


def _convergence(diagnostics: Mapping[str, Any]) -> list[tuple[bool, str]]:
    if "flow_violation" not in diagnostics:
        return []
    lost, imbalance = diagnostics["mass_violation"], diagnostics["flow_violation"]
    converged = lost <= MOST_VIOLATION and imbalance <= MOST_IMBALANCE
    state = "converged" if converged else "NOT converged, train longer"
    words = (
        f"The dual has {state}: mass is conserved within {lost:.1%} (at most {MOST_VIOLATION:.0%} is good), "
        f"and the flow through the states is out of balance by {imbalance:.2f} (at most {MOST_IMBALANCE:g})."
    )
    return [(converged, words)]


def _spread(diagnostics: Mapping[str, Any], remedy: str) -> list[tuple[bool, str]]:
    if "effective_sample_size" not in diagnostics:
        return []
    share = diagnostics["effective_sample_size"]
    if share >= LEAST_SAMPLE_SIZE:
        return [(True, f"The lessons rest on {share:.1%} of the data.")]
    return [(False, f"The lessons have COLLAPSED onto {share:.1%} of the data; use {remedy}.")]


def _difference(diagnostics: Mapping[str, Any], remedy: str) -> tuple[bool, str]:
    if diagnostics["distance_to_twin"] >= LEAST_DISTANCE:
        return True, "The policy differs from its cloning twin."
    return False, f"The policy is INDISTINGUISHABLE from plain cloning; use {remedy}."
