"""`estimate`: J of a policy from logged episodes alone, with an interval and how far to believe it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from aetdice.data import Episodes
from aetdice.estimation.acting import Acting, MixtureActing, acting_of
from aetdice.estimation.checks import (
    CAUTION,
    errors_of_parts,
    model_errors,
    reproduce,
    rollouts_in,
    unheard,
    unseen_alone,
)
from aetdice.estimation.counted_model import CountedModel
from aetdice.estimation.errors import mean_error, typical_error, values_of
from aetdice.estimation.foresight import foreseen
from aetdice.estimation.inputs import check_alike, check_kinds, recorded
from aetdice.estimation.intervals import (
    ROUNDING,
    Interval,
    covariance,
    draws_of,
    improvement,
    interval_of,
    normal_quantile,
)
from aetdice.estimation.models import MOST_DIMENSIONS, estimation_model, kind_of_model
from aetdice.estimation.neighbour_model import NeighbourModel
from aetdice.estimation.opinions import LONGEST, MOST_STEPS, Opinion, opinions_on
from aetdice.estimation.recording import Recording, bootstrap_weights
from aetdice.estimation.support import Support, judge_support
from aetdice.evaluation import Policy
from aetdice.evaluation.scores import QUANTILES
from aetdice.objectives import Objective

LEVEL = 0.9
SAMPLED = 100
"""Rollouts whose returns a record keeps."""
REPLICATES = 200
"""Of the bootstrap in a counted model."""
FEW_REPLICATES = 16
"""Where rollouts are made for each."""
OPINION_REPLICATES = 40
MOST_RECORDED = 500_000
"""Steps that a model is made of: more episodes than have so many are left out."""
COMPARED = 4_096
"""States in which policy and twin are compared."""
SMALLEST = -50.0
"""Of a log-probability."""


@dataclass(frozen=True, eq=False)
class PolicyEstimate:
    """What a policy would attain, by the data."""

    objective: str
    interval: Interval
    """J with both components of its error."""
    disagreement: float
    """The second component: by how much sound estimators differ, beyond their noise."""
    model_error: float
    """The third: by how much a model of neighbours is wrong about what is known."""
    utilities: Float[np.ndarray, " n"]
    """E[F(R)]."""
    returns: Float[np.ndarray, "rollouts m"]
    """Of the policy in the model."""
    improvement: float | None
    """P(J of the policy > J of the logged behaviour); None if every recording was cut before the horizon."""
    logged: Interval
    """J of the log itself, as far as it was recorded."""
    support: Support
    opinions: dict[str, dict[str, Any]]
    """By estimator: J, its standard error, and whether it was heard."""
    episodes: int
    """That were looked at."""
    unseen: int
    """Of them, those that the policy was not trained on."""

    @property
    def value(self) -> float:
        return self.interval.value

    def record(self) -> dict[str, Any]:
        """As results keep it."""
        known = self.support.word == "supported"
        quantiles = {str(q): np.quantile(self.returns, q, axis=0).tolist() for q in QUANTILES}
        return {
            "objective": self.objective,
            **self.interval._asdict(),
            "disagreement": self.disagreement,
            "model_error": self.model_error,
            "expected_utilities": self.utilities.tolist(),
            "mean_returns": self.returns.mean(axis=0).tolist(),
            "quantiles": quantiles if known else None,
            "sample": np.round(self.returns[:SAMPLED], 4).tolist() if known else None,
            "improvement": self.improvement,
            "logged": self.logged._asdict(),
            "support": self.support.record(),
            "estimators": self.opinions,
            "episodes": self.episodes,
            "unseen": self.unseen,
        }


def estimate(
    policy: Policy | Acting,
    dataset: Episodes,
    objective: Objective | None = None,
    *,
    twin: Policy | Acting | None = None,
    seen: Episodes | None = None,
    horizon: int | None = None,
    level: float = LEVEL,
    seed: int = 0,
) -> PolicyEstimate:
    """J = G(E[F(R)]) of a policy, from episodes that others recorded.

    Give episodes that it was not trained on: those it knows by heart flatter it. What it has `seen` may
    stand beside them: that tells of transitions too, and whether it flatters is checked by the others
    alone. With its cloning `twin`, which stands for the behaviour, importance sampling has a say.
    """
    known_twin, known_seen = ([] if each is None else [each] for each in (twin, seen))
    check_kinds([policy, *known_twin], [dataset, *known_seen], objective, horizon, level)
    kept = recorded(policy, twin, _some_of(dataset, MOST_RECORDED, seed), objective, horizon)
    recording = kept
    if seen is not None:
        part = _some_of(seen, MOST_RECORDED - kept.episodes.steps, seed)
        known = recorded(policy, twin, part, kept.objective, kept.horizon)
        check_alike(kept.episodes, known.episodes)
        both_parts = Episodes.joined([kept.episodes, known.episodes])
        recording = Recording.of(both_parts, kept.objective, kept.horizon)
    acting, behaviour = _acting(policy), None if twin is None else _acting(twin)
    known_kind = kind_of_model(recording.episodes)
    kind = known_kind or NeighbourModel
    tabular, model = kind is CountedModel, estimation_model(recording.episodes, recording.horizon, kind)
    weights = bootstrap_weights(recording.count, REPLICATES if tabular else FEW_REPLICATES, seed)
    rollouts = model.roll_out(acting, recording.utilities_of, weights, rollouts_in(model), seed)
    opinions = _opinions(kept, acting, behaviour, seed, tabular)
    reproduction = None if behaviour is None else reproduce(model, recording, behaviour, level, seed)
    if reproduction is not None and not reproduction.agrees:
        opinions = [unheard(each) if each.cloned else each for each in opinions]
    if seen is not None:
        opinions.append(unseen_alone(kept, acting, seed, model))
    freedom = rollouts.course.effective_episodes - 1
    size = len(recording.steps.zero_utility)
    both = np.concatenate([rollouts.utilities, recording.logged(weights)], axis=1)
    shared, own = (np.zeros((2 * size, 2 * size)) for _ in range(2))
    shared[:size, :size], own[:size, :size] = rollouts.noise, rollouts.replicate_noise
    draws = draws_of(both[0], covariance(both, shared, own), freedom, seed)
    aggregation = recording.objective.aggregation
    errors = model_errors(model, recording, reproduction, seed)
    wrong = 0.0 if errors is None else mean_error(recording.objective, both[0, :size], errors, level)
    if isinstance(model, NeighbourModel):
        apart = errors_of_parts(model, recording, acting, both[0, :size], seed)
        wrong = float(np.hypot(wrong, typical_error(recording.objective, both[0, :size], apart, level)))
    first = interval_of(aggregation, both[0, :size], draws[:, :size], level).widened(wrong)
    shown = {o.name: _shown(o, recording.objective, first, level) for o in opinions}
    disagreement = max((each["disagreement"] for each in shown.values() if each["heard"]), default=0.0)
    whole = recording.reach == recording.horizon
    return PolicyEstimate(
        objective=recording.objective.name,
        interval=first.widened(disagreement),
        disagreement=disagreement,
        model_error=wrong,
        utilities=both[0, :size],
        returns=rollouts.course.returns,
        improvement=improvement(
            aggregation, draws[:, :size], draws[:, size:], float(np.hypot(disagreement, wrong)), level
        )
        if whole
        else None,
        logged=interval_of(aggregation, both[0, size:], draws[:, size:], level),
        support=judge_support(
            foreseen(model, rollouts.course, seed),
            None if behaviour is None else _distance(recording, acting, behaviour),
            _warnings(known_kind is not None, first, disagreement),
            None if whole else f"nothing was recorded beyond step {recording.reach} of {recording.horizon}",
        ),
        opinions=shown,
        episodes=recording.count,
        unseen=kept.count,
    )


def _some_of(episodes: Episodes, most: int, seed: int) -> Episodes:
    """The episodes, or as many of them at random as have about so many steps; one at least."""
    if episodes.steps <= most:
        return episodes
    count = max(1, max(most, 0) * len(episodes) // episodes.steps)
    return episodes.select(np.sort(np.random.default_rng(seed).permutation(len(episodes))[:count]))


def _acting(policy: Policy | Acting) -> Acting:
    return acting_of(policy) if isinstance(policy, Policy) else policy


def _opinions(
    recording: Recording, acting: Acting, behaviour: Acting | None, seed: int, tabular: bool
) -> list[Opinion]:
    """On so many episodes as can be heard in reasonable time; none on what a single state does not tell."""
    if isinstance(acting, MixtureActing) or (not tabular and recording.horizon > LONGEST):
        return []
    part = _some_of(recording.episodes, MOST_STEPS, seed)
    if part is not recording.episodes:
        recording = Recording.of(part, recording.objective, recording.horizon)
    weights = bootstrap_weights(recording.count, OPINION_REPLICATES, seed)
    return opinions_on(recording, acting, behaviour, weights, tabular)


def _shown(opinion: Opinion, objective: Objective, own: Interval, level: float) -> dict[str, Any]:
    values = values_of(objective, opinion.utilities)
    error = float(np.std(values[1:], ddof=1))
    apart = abs(float(values[0]) - own.value)
    noise = CAUTION * np.hypot(normal_quantile(level) * error, own.half)
    return {
        "value": float(values[0]),
        "error": error,
        "heard": opinion.heard,
        "why": opinion.why,
        "disagreement": float(max(0.0, apart - noise)) if apart > ROUNDING * abs(own.value) else 0.0,
    }


def _warnings(near: bool, first: Interval, disagreement: float) -> list[str]:
    found = [] if near else [f"neighbours are not near in more than {MOST_DIMENSIONS} dimensions"]
    if disagreement > first.half:
        found.append(f"sound estimators differ by {disagreement:.3g} beyond their noise")
    return found


def _distance(recording: Recording, acting: Acting, behaviour: Acting) -> float:
    """E[log π - log b] over what π does in the states of the log."""
    rows = np.random.default_rng(0).permutation(recording.episodes.steps)[:COMPARED]
    states = recording.before.take(rows)
    actions, chances = acting.choices(states, seed=0)
    total = np.zeros(len(rows))
    for a in range(chances.shape[1]):
        ours, theirs = (each.likelihood(states, actions[:, a]) for each in (acting, behaviour))
        total += chances[:, a] * np.where(
            chances[:, a] > 0, np.maximum(ours, SMALLEST) - np.maximum(theirs, SMALLEST), 0
        )
    return float(np.mean(total))
