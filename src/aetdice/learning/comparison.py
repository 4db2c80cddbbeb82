"""`select`: which of several runs to take, by the lower bounds of their estimates alone."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from aetdice.data import Episodes
from aetdice.errors import InputError
from aetdice.learning.estimates import estimate_member, parts_of
from aetdice.learning.inputs import set_aside
from aetdice.learning.run import Member, Run

RULE = "largest lower bound of the estimate, among policies that are not called 'do not trust'"
CLONING = "nothing beats cloning with confidence: use the cloning twin"


class Offer(NamedTuple):
    """What is known of a policy by logged episodes alone."""

    name: str
    value: float
    low: float
    word: str
    """Of its support."""


class Recommendation(NamedTuple):
    """Which offer to take; None: the cloning twin."""

    chosen: int | None
    words: str


def recommend(offers: Sequence[Offer], cloning: float) -> Recommendation:
    """The offer with the largest lower bound, if that is above what cloning is worth."""
    heard = [i for i, offer in enumerate(offers) if offer.word != "do not trust"]
    best = max(heard, key=lambda i: offers[i].low, default=None)
    if best is None or offers[best].low <= cloning:
        return Recommendation(None, CLONING)
    return Recommendation(best, f"{offers[best].name} has the {RULE}")


class Comparison(NamedTuple):
    """Several runs beside each other."""

    offers: list[Offer]
    estimates: list[dict[str, Any]]
    """As results keep them, one per offer."""
    members: list[Member]
    recommendation: Recommendation

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        chosen = self.recommendation.chosen
        return {
            "selected_with": "offline",
            "recommended": "cloning" if chosen is None else self.offers[chosen].name,
            "words": self.recommendation.words,
            "rule": RULE,
            "candidates": [
                {"name": offer.name, "params": member.params, "estimate": found}
                for offer, member, found in zip(self.offers, self.members, self.estimates, strict=True)
            ],
        }


def select(
    runs: Sequence[Run], dataset: Episodes | None = None, *, names: Sequence[str] | None = None
) -> Comparison:
    """Estimate the selected member of every run on the same kept episodes, and say which one to take.

    The runs share their objective. `dataset` is what they were trained on, of which each kept a part
    (`trainer.report`); without it, it is read from where the runs found it.
    """
    names = [f"{i}: {run.algorithm}" for i, run in enumerate(runs)] if names is None else names
    _check_alike(runs)
    members = [run.selected for run in runs]
    found = []
    for run, member in zip(runs, members, strict=True):
        seen, kept = parts_of(run) if dataset is None else set_aside(dataset, run.config)
        known = None if kept is None else seen
        found.append(estimate_member(member, seen if kept is None else kept, known, run.horizon))
    offers = [
        Offer(name, policy["value"], policy["low"], policy["support"]["word"])
        for name, policy in zip(names, (each["policy"] for each in found), strict=True)
    ]
    return Comparison(offers, found, members, recommend(offers, max(map(_cloning, found))))


def _cloning(found: dict[str, Any]) -> float:
    """What the twin is estimated at; what the log attained, where that cannot be trusted."""
    twin = found["twin"]
    trusted = twin["support"]["word"] != "do not trust"
    return float(twin["value"] if trusted else twin["logged"]["value"])


def _check_alike(runs: Sequence[Run]) -> None:
    if not runs:
        raise InputError("there is nothing to select from: give select the runs")
    named = {run.selected.objective.name for run in runs}
    if len(named) > 1:
        raise InputError(f"runs are compared under one objective, not {' and '.join(sorted(named))}")
    data = {run.request.get("dataset", {}).get("sha256") for run in runs}
    if len(data) > 1:
        raise InputError("the runs were trained on different data: they kept different episodes")
