"""Fair-Taxi as in the paper: behaviours over α, the non-Markovian probe, quantiles, dense rewards or not."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from aetdice.config import TrainingConfig
from aetdice.envs import FairTaxi
from aetdice.envs.fair_taxi.collection import collect_fair_taxi
from aetdice.evaluation.rollout import Situation, sample_returns
from aetdice.exact import AugmentedSpace, Optimum, TabularMOMDP, enumerate_space, solve
from aetdice.learning.checkpointing import Report
from aetdice.learning.job import summarise
from aetdice.learning.run import Run
from aetdice.learning.training import train
from aetdice.networks import PolicyNetwork
from aetdice.objectives import bsr
from aetdice.studies.parts import Part

LEVELS = np.linspace(0, 1, 101)
PAPER = {
    "ESR": (1.197, -0.797, 1.130),
    "BSR 0.5": (0.193, -0.788, 1.748),
    "SER": (0.110, -1.045, 1.804),
}
"""The paper's table: trained for (rows) under ESR, BSR(0.5) and SER; its layout is not printed."""
BEHAVIOURS: dict[str, tuple[bool, bool]] = {
    "only group 0": (True, False),
    "both groups": (True, True),
    "only group 1": (False, True),
}
"""Whether each group gains something within an episode."""


@dataclass(frozen=True)
class Plan:
    """How much of the study to do."""

    alphas: tuple[tuple[float, ...], ...]
    """Each group is trained as one population, one part of the study."""
    terminal_alphas: tuple[float, ...]
    betas: tuple[float, ...]
    seeds: tuple[int, ...]
    episodes: int
    config: TrainingConfig


FULL = Plan(
    alphas=((0.0, 0.25, 0.45), (0.5, 0.75, 1.0)),
    terminal_alphas=(0.0, 0.5),
    betas=(1e-3, 3e-4),
    seeds=(0, 1, 2),
    episodes=4000,
    config=TrainingConfig(floor=0.01, holdout=0.1, chunk=2_000),
)
QUICK = Plan(
    alphas=((0.0, 0.45, 1.0),),
    terminal_alphas=(0.0,),
    betas=(1e-3,),
    seeds=(0,),
    episodes=2000,
    config=TrainingConfig(hidden=(128, 128), batch=256, value_steps=6_000, cloning_steps=3_000, chunk=1_000),
)


def parts_of(plan: Plan) -> list[Part]:
    """The dense study by groups of α, then the one with rewards at the end only."""
    dense = [_part(f"alphas-{i}", plan, alphas, False) for i, alphas in enumerate(plan.alphas)]
    return [*dense, _part("terminal", plan, plan.terminal_alphas, True)]


def _part(name: str, plan: Plan, alphas: Sequence[float], terminal: bool) -> Part:
    config = TrainingConfig(**{**asdict(plan.config), "terminal_reward": terminal})
    facts = {**asdict(plan), "alphas": alphas, "config": asdict(config), "environment": "fair-taxi"}

    def work(folder: Path, report: Report) -> dict[str, Any]:
        taxi = FairTaxi()
        run = train(
            collect_fair_taxi(taxi),
            [bsr(alpha) for alpha in alphas],
            beta=plan.betas,
            seed=plan.seeds,
            config=config,
            out=folder,
            report=report,
        )
        return measure(run, taxi, enumerate_space(TabularMOMDP.from_environment(taxi)), alphas, plan.episodes)

    return Part(name, facts, work)


def measure(
    run: Run, taxi: FairTaxi, space: AugmentedSpace, alphas: Sequence[float], episodes: int
) -> dict[str, Any]:
    """Scores of every member, and what the selected policies of every α do."""
    summary = summarise(run, taxi, space, episodes)
    policies = {}
    for alpha, selection in zip(alphas, run.selections, strict=True):
        optimum = solve(space, bsr(alpha), check=False)
        seeds = [run.members[i].policy.policy for i in run.seeds_of(selection)]
        policies[f"{alpha:g}"] = {
            "exact_shares": exact_shares(optimum),
            "seeds": [_behaviour(policy, taxi, episodes) for policy in seeds],
        }
    return {**summary, "policies": policies}


def _behaviour(policy: PolicyNetwork, taxi: FairTaxi, episodes: int) -> dict[str, Any]:
    returns = sample_returns(policy, taxi, episodes, seed=2026)
    return {
        "shares": shares(returns),
        "shares_of_100": shares(returns[:100]),
        "variance": returns.var(axis=0).tolist(),
        "mean": returns.mean(axis=0).tolist(),
        "quantiles": np.quantile(returns, LEVELS, axis=0).T.tolist(),
        "probe": _probe(policy, taxi, episodes),
    }


def shares(returns: Float[np.ndarray, "episodes m"]) -> dict[str, float]:
    """How often an episode shows each behaviour."""
    return {
        name: float(np.mean(np.all((returns > 0) == np.array(gains), axis=1)))
        for name, gains in BEHAVIOURS.items()
    }


def exact_shares(optimum: Optimum) -> dict[str, float]:
    """The same of an exact optimum."""
    outcomes = optimum.outcomes
    gained = outcomes.returns > 0
    return {
        name: float(outcomes.probabilities @ np.all(gained == np.array(gains), axis=1))
        for name, gains in BEHAVIOURS.items()
    }


def _probe(policy: PolicyNetwork, taxi: FairTaxi, episodes: int) -> dict[str, float]:
    """Half-way, empty, at group 0's destination: whom is it going to serve, by what was accrued?"""
    row, column = taxi.destinations[0]
    state = jnp.asarray(taxi.state_of(row, column, 0))
    turned = {}
    for served in (3, 0):
        accrued = np.zeros(len(taxi.origins), np.float32)
        accrued[0] = served * taxi.deliveries[0] / taxi.scale
        begin = Situation(state, jnp.asarray(accrued), jnp.asarray(taxi.horizon // 2))
        returns = sample_returns(policy, taxi, episodes, seed=2026, begin=begin)
        turned[f"served {served}"] = float(np.mean(returns[:, 1] > 0))
    return turned


def merge(results: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """What is known of every α: from rewards along the way ("dense") and at the end ("terminal")."""
    merged: dict[str, dict[str, Any]] = {"dense": {}, "terminal": {}}
    for name, part in results.items():
        kind = "terminal" if name == "terminal" else "dense"
        for alpha, summary in zip(part["policies"], part["by_objective"], strict=True):
            chosen = _setting(summary["selected"]["params"])
            rows = [row for row in part["members"] if _setting(row["params"]) == chosen]
            merged[kind][alpha] = {**summary, **part["policies"][alpha], "members": rows}
    return merged


def _setting(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if name != "seed"}
