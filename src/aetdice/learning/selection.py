"""Which setting to take: read from diagnostics, without the environment."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from aetdice.algorithms.episode_weighting import LEAST_EPISODES

MOST_VIOLATION = 0.05
"""Of mass, at any time step."""
MOST_IMBALANCE = 0.6
"""Of the flow through the states, as random functions of the state see it."""
LEAST_SAMPLE_SIZE = 0.02

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
