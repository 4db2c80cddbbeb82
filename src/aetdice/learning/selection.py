"""Which setting to take, and whether to trust it: read from diagnostics, without the environment."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from aetdice.algorithms import Hints
from aetdice.algorithms.episode_weighting import LEAST_EPISODES

MOST_VIOLATION = 0.05
"""Of mass, at any time step."""
MOST_IMBALANCE = 0.6
"""Of the flow through the states, as random functions of the state see it."""
LEAST_SAMPLE_SIZE = 0.02
LEAST_DISTANCE = 0.02
MOST_UNCERTAINTY = 0.1
"""Of J in the recorded model, half a 95 % interval, relative to what the policy gains over the data."""
MOST_CHANCE = 0.01
"""Of steps after which something else might have followed, where whole episodes are weighed."""

RULE = (
    "largest ratio-weighted J on held-out episodes, averaged over seeds, among settings with mass conserved "
    f"within {MOST_VIOLATION:g}, flow balanced within {MOST_IMBALANCE:g} and an effective sample size of at "
    f"least {LEAST_SAMPLE_SIZE:.0%}"
)
ONLY = "the only setting"
CLAIMED = "largest J of the weighted episodes, averaged over seeds"
MODELLED = "largest J of the policy in the recorded model of the transitions, averaged over seeds"
FIRST = "the first setting given: nothing but the environment can tell the settings of this algorithm apart"
NONE_PASSED = "no setting passed the rule; the one whose flow is balanced best"


class Verdict(NamedTuple):
    """Whether to trust a member, in plain words."""

    trusted: bool
    words: str


class Selection(NamedTuple):
    """The setting chosen for one objective."""

    chosen: int
    """The index of the member with the setting's first seed."""
    rule: str


class Candidate(NamedTuple):
    """What the rule sees of a member."""

    objective: str
    """Its full name: a short one does not tell all of an objective."""
    setting: tuple[Any, ...]
    """What distinguishes the member, except its objective and its seed."""
    diagnostics: Mapping[str, Any]


def select(candidates: Sequence[Candidate]) -> list[Selection]:
    """For each objective the best setting, by a rule that never sees the environment."""
    by_objective: dict[str, dict[tuple[Any, ...], list[int]]] = {}
    for index, candidate in enumerate(candidates):
        settings = by_objective.setdefault(candidate.objective, {})
        settings.setdefault(candidate.setting, []).append(index)
    return [_select(candidates, list(settings.values())) for settings in by_objective.values()]


def _select(candidates: Sequence[Candidate], settings: list[list[int]]) -> Selection:
    if len(settings) == 1:
        return Selection(settings[0][0], ONLY)

    def mean(name: str, rows: list[int]) -> float:
        return float(np.mean([candidates[i].diagnostics[name] for i in rows]))

    if "model_value" in candidates[settings[0][0]].diagnostics:
        return Selection(max(settings, key=lambda rows: mean("model_value", rows))[0], MODELLED)
    if "held_out_claimed_value" not in candidates[settings[0][0]].diagnostics:
        return Selection(settings[0][0], FIRST)
    if "flow_violation" not in candidates[settings[0][0]].diagnostics:
        enough = [rows for rows in settings if mean("effective_episodes", rows) >= LEAST_EPISODES]
        return Selection(max(enough or settings, key=lambda rows: mean("claimed_value", rows))[0], CLAIMED)

    sound = [
        rows
        for rows in settings
        if mean("mass_violation", rows) <= MOST_VIOLATION
        and mean("flow_violation", rows) <= MOST_IMBALANCE
        and mean("effective_sample_size", rows) >= LEAST_SAMPLE_SIZE
    ]
    if not sound:
        return Selection(min(settings, key=lambda rows: mean("flow_violation", rows))[0], NONE_PASSED)
    return Selection(max(sound, key=lambda rows: mean("held_out_claimed_value", rows))[0], RULE)


def trusted_by_words(words: str) -> bool:
    """Version 0.1 kept the words of a verdict alone; what spoke against a member stood in capitals."""
    return not any(mark in words for mark in ("NOT converged", "COLLAPSED", "INDISTINGUISHABLE"))


def judge(diagnostics: Mapping[str, Any], hints: Hints | None) -> Verdict:
    """Read a member's diagnostics: converged, different from its twin, ratios not collapsed."""
    if hints is None:
        return Verdict(True, "This is plain cloning.")
    findings = [
        *_convergence(diagnostics),
        *_sample_size(diagnostics, hints.closer),
        *_episodes(diagnostics, hints.closer),
        *_uncertainty(diagnostics),
        _difference(diagnostics, hints.further),
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


def _sample_size(diagnostics: Mapping[str, Any], hint: str) -> list[tuple[bool, str]]:
    if "effective_sample_size" not in diagnostics:
        return []
    share = diagnostics["effective_sample_size"]
    if share >= LEAST_SAMPLE_SIZE:
        return [(True, f"The sample weights rest on {share:.1%} of the data.")]
    return [(False, f"The sample weights have COLLAPSED onto {share:.1%} of the data; use {hint}.")]


def _episodes(diagnostics: Mapping[str, Any], hint: str) -> list[tuple[bool, str]]:
    if "effective_episodes" not in diagnostics:
        return []
    count, chance = diagnostics["effective_episodes"], diagnostics["stochastic_share"]
    enough = count >= LEAST_EPISODES
    findings = [
        (True, f"Whole episodes are weighed; the weights rest on {count:.1f} of them.")
        if enough
        else (False, f"The weights have COLLAPSED onto {count:.1f} episodes; use {hint}.")
    ]
    if joined := diagnostics.get("joined_share"):
        findings.append((True, f"{joined:.0%} of the weight is of episodes joined from parts of others."))
    if chance > MOST_CHANCE:
        findings.append(
            (
                False,
                f"After {chance:.0%} of the steps something else might have followed: weights of whole "
                "episodes REWARD LUCK; use aetdice.",
            )
        )
    return findings


def _uncertainty(diagnostics: Mapping[str, Any]) -> list[tuple[bool, str]]:
    """Where transitions are stochastic: what the policy attains by the data, and how sure that is."""
    if "model_value" not in diagnostics:
        return []
    share, value = diagnostics["model_uncertainty"], diagnostics["model_value"]
    if share <= MOST_UNCERTAINTY:
        return [(True, f"In the recorded model of the transitions the policy attains {value:.4g}.")]
    words = (
        f"In the recorded model of the transitions the policy attains {value:.4g}, which is UNCERTAIN by "
        f"{min(share, 9.99):.0%} of what it gains over the data: record more episodes."
    )
    return [(False, words)]


def _difference(diagnostics: Mapping[str, Any], hint: str) -> tuple[bool, str]:
    if diagnostics["distance_to_twin"] >= LEAST_DISTANCE:
        return True, "The policy differs from its cloning twin."
    return False, f"The policy is INDISTINGUISHABLE from plain cloning; use {hint}."
