"""Scores of sampled episodes: the one path from a policy and an environment to J."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from aetdice.errors import InputError
from aetdice.evaluation.policy import Policy
from aetdice.evaluation.rollout import AnyEnvironment, sample_returns
from aetdice.objectives import Objective, Score, bsr, described_objective, esr, lsr, ser

EPISODES, SEED = 2000, 1234
"""Of an evaluation, unless others are given."""
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
SHOWN_OUTCOMES = 20
CONTINUED = ("esr", "bsr")
"""Named objectives whose F is continued below the environment's threshold."""
SWEPT = ("alpha", "rho")
"""Options of an objective that take several values, each another objective."""
TRAINED = "trained"
"""The score under the objective that a policy was trained for."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Sampled episodes, and what each objective makes of them."""

    returns: Float[np.ndarray, "episodes m"]
    scores: dict[str, Score]
    """J with a bootstrap interval, by column: ESR, BSR[alpha=0.5], SER, LSR, and `trained`."""
    objectives: dict[str, str]
    """The full definition of every column, continuation included."""

    @property
    def score(self) -> float:
        """J under the objective that the policy was trained for."""
        if TRAINED not in self.scores:
            raise InputError("no file holds what this policy was trained for: give evaluate its objective=…")
        return self.scores[TRAINED].value

    def record(self) -> dict[str, Any]:
        """As results keep it: scores, quantiles per objective and the commonest outcomes."""
        returns = self.returns
        outcomes, counts = np.unique(np.round(returns, 4), axis=0, return_counts=True)
        order = np.argsort(-counts)[:SHOWN_OUTCOMES]
        return {
            "episodes": len(returns),
            "scores": {
                name: {**score._asdict(), "objective": self.objectives[name]}
                for name, score in self.scores.items()
            },
            "mean_returns": returns.mean(axis=0).tolist(),
            "variances": returns.var(axis=0, ddof=1).tolist()
            if len(returns) > 1
            else [0.0] * returns.shape[1],
            "quantiles": {str(q): np.quantile(returns, q, axis=0).tolist() for q in QUANTILES},
            "outcomes": [
                {"returns": outcomes[i].tolist(), "share": float(counts[i] / len(returns))} for i in order
            ],
        }


def utility_threshold(env: AnyEnvironment) -> float:
    """Below which return F continues logarithms and powers in this environment's own scores; usually 1."""
    return float(getattr(env, "utility_threshold", 1.0))


def standard_objectives(threshold: float = 1.0) -> dict[str, Objective]:
    """ESR, BSR(0.5), SER and LSR, F continued below the threshold."""
    return {
        "ESR": esr(threshold=threshold),
        "BSR[alpha=0.5]": bsr(0.5, threshold=threshold),
        "SER": ser(),
        "LSR": lsr(),
    }


def make_objective(name: str, env: AnyEnvironment, **options: Any) -> Objective:
    """A named objective as an environment scores it: `make_objective("bsr", env, alpha=0.5)`.

    Where nothing else is said, logarithms and powers in F continue below the environment's own
    threshold (0.01 in the mazes, 1 elsewhere); `esr()` and `bsr(…)` by themselves continue below 1.
    """
    (objective,) = make_objectives({"objective": name, **options}, env)
    return objective


def make_objectives(options: Mapping[str, Any], env: AnyEnvironment) -> list[Objective]:
    """The objectives that a command line or a file describes: lists of α or ρ are a sweep."""
    return swept_objectives(options, len(env.objectives), env.horizon, utility_threshold(env))


def swept_objectives(
    options: Mapping[str, Any], objectives: int, horizon: int, threshold: float = 1.0
) -> list[Objective]:
    """The same for data without an environment."""
    options = {name: value for name, value in options.items() if value is not None}
    if options.get("objective") in CONTINUED:
        options.setdefault("threshold", threshold)
    swept = {name: options.pop(name) for name in SWEPT if isinstance(options.get(name), list | tuple)}
    return [
        described_objective({**options, **dict(zip(swept, values, strict=True))}, objectives, horizon)
        for values in itertools.product(*swept.values())
    ]


def columns_of(env: AnyEnvironment, trained: Objective | None) -> dict[str, Objective]:
    """What episodes of an environment are scored under: the standard objectives, and the one trained for."""
    own = {} if trained is None else {TRAINED: trained}
    return {**standard_objectives(utility_threshold(env)), **own}


def score_returns(
    returns: Float[np.ndarray, "episodes m"], objectives: Mapping[str, Objective], seed: int = 0
) -> Evaluation:
    """Episodes under every objective."""
    key = jax.random.key(seed)
    return Evaluation(
        returns,
        {name: objective.score(returns, key) for name, objective in objectives.items()},
        {name: objective.name for name, objective in objectives.items()},
    )


def evaluate_policy(
    policy: Policy,
    env: AnyEnvironment,
    episodes: int = EPISODES,
    seed: int = SEED,
    *,
    objective: Objective | None = None,
    greedy: bool = False,
) -> Evaluation:
    """Sample episodes of a policy and score them.

    `objective` stands in for the one trained for, where a policy file could not hold it.
    """
    returns = sample_returns(policy, env, episodes, seed, greedy=greedy)
    return score_returns(returns, columns_of(env, objective or policy.objective))
