"""`select`: which of several runs to take, by the lower bounds of their estimates alone."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from aetdice.data import Episodes
from aetdice.errors import InputError
from aetdice.evaluation import Policy
from aetdice.learning.estimates import estimate_member, own_parts
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


class OfflineSelection(NamedTuple):
    """Several runs beside each other."""

    offers: list[Offer]
    estimates: list[dict[str, Any]]
    """Of policies and twins as results keep them, one per offer."""
    members: list[Member]
    recommendation: Recommendation

    @property
    def policy(self) -> Policy:
        """The one to take."""
        chosen = self.recommendation.chosen
        return self.members[0].twin if chosen is None else self.members[chosen].policy

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        chosen = self.recommendation.chosen
        return {
            "selected_with": "offline",
            "recommended": "cloning" if chosen is None else self.offers[chosen].name,
            "words": self.recommendation.words,
            "candidates": [
                {"name": offer.name, "params": member.params, "estimate": found}
                for offer, member, found in zip(self.offers, self.members, self.estimates, strict=True)
            ],
        }


def select(
    runs: Sequence[Run],
    dataset: Episodes | None = None,
    *,
    seen: Episodes | None = None,
    names: Sequence[str] | None = None,
) -> OfflineSelection:
    """Estimate the selected member of every run on the same episodes, and say which one to take.

    The runs share their objective. As for `estimate`, give episodes that none was trained on, and what
    they have `seen`; without any, what the runs kept (`trainer.report`) is read from where they found it.
    """
    check_runs(runs)
    names = [f"{i} ({run.algorithm})" for i, run in enumerate(runs)] if names is None else names
    if len(names) != len(runs):
        raise InputError(f"{len(runs)} runs need as many names, not {len(names)}")
    members = [run.selected for run in runs]
    log, known = own_parts(runs[0]) if dataset is None else (dataset, seen)
    found = [
        estimate_member(member, log, known, run.horizon) for run, member in zip(runs, members, strict=True)
    ]
    offers = [
        Offer(name, policy["value"], policy["low"], policy["support"]["word"])
        for name, policy in zip(names, (each["policy"] for each in found), strict=True)
    ]
    return OfflineSelection(offers, found, members, recommend(offers, max(map(_cloning, found))))


def _cloning(found: dict[str, Any]) -> float:
    """What the twin is estimated at; what the log attained, where that cannot be trusted."""
    twin = found["twin"]
    trusted = twin["support"]["word"] != "do not trust"
    return float(twin["value"] if trusted else twin["logged"]["value"])


def check_runs(runs: Any) -> None:
    """`InputError` unless these are runs of one objective that kept the same episodes."""
    if not isinstance(runs, Sequence) or not all(isinstance(run, Run) for run in runs):
        raise InputError("runs are a list of what train or load_run gives")
    if not runs:
        raise InputError("there is nothing to select from: give select the runs")
    named = {run.selected.objective.name for run in runs}
    if len(named) > 1:
        raise InputError(f"runs are compared under one objective, not {' and '.join(sorted(named))}")
    data = {(run.request["dataset"]["sha256"], run.config.trainer.report) for run in runs}
    if len(data) > 1:
        raise InputError("the runs did not keep the same episodes: train them on one dataset, one report=")
