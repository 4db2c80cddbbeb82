"""A finished training: its members, the verdict on each, and the rule that selects one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from aetdice.envs import Environment
from aetdice.evaluation import evaluate_returns, sample_returns, standard_objectives
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


@dataclass(eq=False)
class Run:
    """The members of a population, and the one selected."""

    members: list[Member]
    selected: int
    rule: str
    config: Any
    horizon: int
    seconds: float
    data_returns: Float[np.ndarray, "episodes m"]
    versions: dict[str, str] = field(default_factory=versions)

    @property
    def policy(self) -> ActingPolicy:
        """The selected policy."""
        return self.members[self.selected].policy

    @property
    def twin(self) -> ActingPolicy:
        """Plain behaviour cloning with the same network, data and seed."""
        return self.members[self.selected].twin

    @property
    def verdict(self) -> Verdict:
        return self.members[self.selected].verdict

    def evaluate(self, env: Environment, episodes: int = 2000, seed: int = 1234) -> dict[str, Any]:
        """The selected policy and its twin in an environment: sampled, under every standard objective."""
        objectives = standard_objectives(self.members[self.selected].objective)
        return {
            name: evaluate_returns(sample_returns(acting.policy, env, episodes, seed), objectives)
            for name, acting in (("policy", self.policy), ("twin", self.twin))
        }

    def chosen(self) -> list[Member]:
        """All seeds of the selected setting."""
        setting = setting_of(self.members[self.selected])
        return [member for member in self.members if setting_of(member) == setting]


def setting_of(member: Member) -> tuple[Any, ...]:
    """What distinguishes a member except its seed."""
    return tuple(value for name, value in member.params.items() if name != "seed")


def select(members: Sequence[Member]) -> tuple[int, str]:
    """The first seed of the best setting, by a rule that never sees the environment."""
    settings: dict[tuple[Any, ...], list[int]] = {}
    for index, member in enumerate(members):
        settings.setdefault(setting_of(member), []).append(index)
    if len(settings) == 1:
        return 0, ONLY

    def mean(name: str, rows: list[int]) -> float:
        return float(np.mean([members[i].diagnostics[name] for i in rows]))

    sound = [
        rows
        for rows in settings.values()
        if mean("mass_violation", rows) <= MOST_VIOLATION
        and mean("flow_violation", rows) <= MOST_IMBALANCE
        and mean("effective_sample_size", rows) >= LEAST_SAMPLE_SIZE
    ]
    if not sound:
        rows = min(settings.values(), key=lambda rows: mean("flow_violation", rows))
        return rows[0], "no setting passed the rule; the one whose flow is balanced best"
    return max(sound, key=lambda rows: mean("held_out_value", rows))[0], RULE


def judge(diagnostics: Mapping[str, Any]) -> Verdict:
    """Read a member's diagnostics: converged, different from its twin, ratios not collapsed."""
    low, high = diagnostics["mass_range"]
    imbalance = diagnostics["flow_violation"]
    converged = diagnostics["mass_violation"] <= MOST_VIOLATION and imbalance <= MOST_IMBALANCE
    spread = diagnostics["effective_sample_size"] >= LEAST_SAMPLE_SIZE
    differs = diagnostics["distance_to_twin"] >= LEAST_DISTANCE
    state = "converged" if converged else "NOT converged, train longer"
    words = [
        f"The dual has {state}: mass over time ranges from {low:.3f} to {high:.3f}, and the flow through "
        f"the states is out of balance by {imbalance:.2f} (at most {MOST_IMBALANCE:g} is good).",
        f"The ratios rest on {diagnostics['effective_sample_size']:.1%} of the data."
        if spread
        else f"The ratios have COLLAPSED onto {diagnostics['effective_sample_size']:.1%} of the data; "
        "use a larger beta.",
        "The policy differs from its cloning twin."
        if differs
        else "The policy is INDISTINGUISHABLE from plain cloning; use a smaller beta.",
    ]
    return Verdict(converged and spread and differs, " ".join(words))
