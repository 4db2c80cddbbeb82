"""MO-Gymnasium's stochastic problems, resource-gathering-v0 and fishwood-v0: what the learner attains.

    python experiments/mo_gym.py --out RESULT.json

Data are 2,000 episodes of the real environments, by a uniformly random behaviour or a mixed one: half of
the episodes at random, half by simple policies that take a random action in 3 of 10 steps (one who walks
straight for gold, diamond or both and home again; one who fishes until 3 fish are caught, one who mostly
fishes, one who mostly collects wood). Resource-gathering has its own limit of 100 steps. Fishwood is cut
after 50 steps instead of 200, because a longer one leaves next to no gap: with 200 steps the random
behaviour is at 6.747 and the optimum at 6.778 under ESR.

The tables of both are those of `aetdice.studies.strangers`, checked by stepping the real environments.
Optima, twins and policies are computed exactly on the augmented space, which is why no interval stands
beside a single score; spreads are over training seeds. The learner is
`train(dataset, objective, seed=[0, 1, 2])` with no setting given, for ESR and an objective of our own per
problem:

- resource-gathering: F = (tanh 2(R_gold + R_death), tanh 2(R_diamond + R_death)), G = Σ log(1 + k_i)
- fishwood: F = (σ(2(fish - 2.5)), σ((wood - 20)/2)), G = Σ log k_i: both quotas are met often

Beside it stand: a sweep of β in one population with what the selection rule picks of it, ESR-IQL and
episode weighting, and the optimum of the pooled empirical model, evaluated in the true one: what a planner
without regulariser or network gets out of the same data. The objectives were settled by looking at the
optima alone, before any training; no setting was.
"""

import argparse
import dataclasses
import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from aetdice.config import TrainingConfig, parse_setting
from aetdice.data import Episode, Episodes
from aetdice.evaluation.tabulation import tabulated
from aetdice.exact import (
    AugmentedSpace,
    TabularMOMDP,
    TabularPolicy,
    enumerate_space,
    solve,
)
from aetdice.files import package_version, versions, write_json
from aetdice.learning.run import Run, gap_share
from aetdice.learning.training import train
from aetdice.objectives import Objective, esr, written_objective
from aetdice.studies.parts import code_commit
from aetdice.studies.strangers.mo_gym_tables import (
    DIAMOND,
    FISH,
    GOLD,
    HOME,
    MOVES,
    WOOD,
    MoGymTable,
    fishwood,
    gathering,
)
from aetdice.studies.strangers.stepping import outcomes_of, worst_deviation

EPISODES = 2_000
EXPLORATION = 0.3
SEEDS = [0, 1, 2]
BETAS = [1e-2, 1e-3, 1e-4]
QUOTA = 3

Choose = Callable[[np.ndarray, np.ndarray], int]
"""An action for an observation and the accrued reward."""


class Problem(NamedTuple):
    """A MO-Gymnasium problem, its table and what is asked of it."""

    table: MoGymTable
    momdp: TabularMOMDP
    mixed: Callable[[np.random.Generator], Choose]
    """A policy for one episode."""
    objectives: dict[str, Objective]


# Resource gathering: walk, collect, come home, do not meet an enemy.


def gatherer(rng: np.random.Generator) -> Choose:
    """Straight for gold, diamond or both, then home."""
    wanted = [[GOLD], [DIAMOND], [GOLD, DIAMOND], [DIAMOND, GOLD]][rng.integers(4)]

    def choose(observation: np.ndarray, accrued: np.ndarray) -> int:
        del accrued
        has = {GOLD: observation[2], DIAMOND: observation[3]}
        target = next((cell for cell in wanted if not has[cell]), HOME)
        nearer = [
            a for a, move in enumerate(MOVES) if move[0] * (target[0] - observation[0]) > 0
            or move[1] * (target[1] - observation[1]) > 0
        ]  # fmt: skip
        return int(rng.choice(nearer))

    return choose


# Fishwood: one thing at a time.


def fisher(rng: np.random.Generator) -> Choose:
    """Fish to a quota and then wood, or mostly one of them."""
    kind = rng.integers(3)

    def choose(observation: np.ndarray, accrued: np.ndarray) -> int:
        del observation
        return int((FISH if accrued[FISH] < QUOTA else WOOD, FISH, WOOD)[kind])

    return choose


def problems() -> dict[str, Problem]:
    gather, fish = gathering(100), fishwood(50)
    net = "tanh(2*(r1 + r0)), tanh(2*(r2 + r0))"
    quotas = "sigmoid(2*(r0 - 2.5)), sigmoid((r1 - 20)/2)"
    return {
        "resource-gathering": Problem(
            gather,
            gather.momdp(),
            gatherer,
            {
                "ESR": esr(),
                "own": written_objective(net, "log(1 + k0) + log(1 + k1)", 3, 100, 0.1, 0.1),
            },
        ),
        "fishwood": Problem(
            fish,
            fish.momdp(),
            fisher,
            {"ESR": esr(), "own": written_objective(quotas, "log(k0) + log(k1)", 2, 50, 0.1, 0.1)},
        ),
    }


# Data of the real environments, and the tables against them.


def collect(problem: Problem, mixed: bool, seed: int) -> Episodes:
    env, rng = problem.table.make(), np.random.default_rng([seed, mixed])
    episodes = []
    for index in range(EPISODES):
        policy = problem.mixed(rng) if mixed and index % 2 else None
        observation, _ = env.reset(seed=None if index else seed)
        observations, actions, rewards, done = [np.array(observation)], [], [], False
        accrued = np.zeros(problem.momdp.reward.shape[3])
        while not done:
            random = policy is None or rng.random() < EXPLORATION
            chosen = rng.integers(problem.momdp.actions) if random else policy(observations[-1], accrued)
            observation, reward, terminated, truncated, _ = env.step(int(chosen))
            done = terminated or truncated
            accrued = accrued + reward
            observations.append(np.array(observation))
            actions.append(int(chosen))
            rewards.append(np.array(reward, float))
        episodes.append(Episode(observations, actions, rewards, bool(terminated), bool(truncated)))
    return Episodes.from_list(episodes)


def pooled_model(momdp: TabularMOMDP, dataset: Episodes) -> tuple[TabularMOMDP, np.ndarray]:
    """The table with the frequencies of the data; an action never taken does what the commonest does.

    Outcomes never seen keep a probability of 1e-12, so that the augmented space is the true one's.
    """
    index = {tuple(o): s for s, o in enumerate(momdp.observations.tolist()) if not momdp.terminal[s]}
    counts = np.zeros(momdp.probability.shape)
    for episode in dataset:
        frames, last = episode.observations.tolist(), len(episode.actions) - 1
        for t, action in enumerate(episode.actions):
            s = index[tuple(frames[t])]
            key = (*frames[t + 1], episode.terminated and t == last, *episode.rewards[t].tolist())
            counts[s, action, list(outcomes_of(momdp, s, action)).index(key)] += 1
    taken = counts.sum(axis=2)
    stands_for = np.where(taken > 0, np.arange(momdp.actions)[None], taken.argmax(axis=1)[:, None])
    rows = np.arange(momdp.states)[:, None]
    visited = (taken.sum(axis=1) > 0)[:, None, None]
    known = np.where(momdp.probability > 0, np.maximum(counts / np.maximum(taken[..., None], 1), 1e-12), 0)
    probability = np.where(
        visited, (known / known.sum(axis=2, keepdims=True))[rows, stands_for], momdp.probability
    )
    model = dataclasses.replace(
        momdp,
        probability=probability,
        next_state=np.where(visited, momdp.next_state[rows, stands_for], momdp.next_state),
        reward=np.where(visited[..., None], momdp.reward[rows, stands_for], momdp.reward),
    )
    return model, stands_for


def planned(space: AugmentedSpace, dataset: Episodes, objective: Objective) -> tuple[float, TabularPolicy]:
    """The optimum of the pooled model, and its policy in the true one."""
    model, stands_for = pooled_model(space.momdp, dataset)
    optimum = solve(enumerate_space(model), objective, check=False)
    probabilities = []
    for layer, choice in zip(space.layers[:-1], optimum.policy.probabilities, strict=True):
        moved = np.zeros_like(choice)
        targets = stands_for[layer.state[layer.live]]
        np.add.at(moved, (np.arange(len(choice))[:, None], targets), choice)
        probabilities.append(moved)
    return optimum.value, TabularPolicy(space, probabilities)


# Measurement.


def measure(run: Run, space: AugmentedSpace, objective: Objective, best: float) -> list[dict[str, Any]]:
    """Every member's exact J beside its twin's, and what it claims."""
    rows = []
    for member in run.members:
        outcomes, twin_outcomes = (
            tabulated(policy.network, space).outcomes() for policy in (member.policy, member.twin)
        )
        score, twin = outcomes.score(objective), twin_outcomes.score(objective)
        known = member.diagnostics
        claimed = known.get("model_value", known.get("claimed_value"))
        rows.append(
            {
                "params": {name: v for name, v in member.params.items() if name != "objective"},
                "score": score,
                "twin": twin,
                "gap_share": gap_share(score, twin, best),
                "claimed": claimed,
                "claim_error": None if claimed is None else (claimed - score) / (best - twin),
                "trusted": member.verdict.trusted,
                "verdict": member.verdict.words,
                "mean_return": outcomes.mean.tolist(),
                "diagnostics": {
                    name: member.diagnostics[name]
                    for name in ("mass_violation", "flow_violation", "effective_sample_size", "zero_share",
                                 "dual_value", "held_out_claimed_value", "multiplier", "distance_to_twin")
                    if name in member.diagnostics
                },
            }
        )  # fmt: skip
    return rows


VARIANTS: dict[str, dict[str, Any]] = {
    "aetdice": {"seed": SEEDS},
    "beta sweep": {"seed": 0, "beta": BETAS},
    "esr-iql": {"seed": SEEDS, "algorithm": "esr-iql"},
    "episode-weighting": {"seed": SEEDS, "algorithm": "episode-weighting"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--problems", nargs="+", default=["resource-gathering", "fishwood"])
    parser.add_argument("--data", nargs="+", default=["random", "mixed"])
    parser.add_argument("--objectives", nargs="+", default=["ESR", "own"])
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS))
    parser.add_argument("--set", nargs="+", default=[], help="settings, to try others than the defaults")
    parser.add_argument("--commit", default=code_commit())
    arguments = parser.parse_args()
    config = TrainingConfig().adapted(dict(parse_setting(text) for text in arguments.set))
    known = problems()
    result: dict[str, Any] = {
        "episodes": EPISODES,
        "data_seed": 0,
        "seeds": SEEDS,
        "settings": config.changed(),
        "commit": arguments.commit,
        "date": datetime.date.today().isoformat(),
        "device": jax.devices()[0].device_kind,
        "versions": {**versions(), "mo-gymnasium": package_version("mo-gymnasium")},
        "table_checks": {name: worst_deviation(known[name].table) for name in arguments.problems},
        "rows": [],
    }
    if arguments.out.is_file():  # a run that was cut off goes on
        result["rows"] = json.loads(arguments.out.read_text(encoding="utf-8"))["rows"]
    done = {(row["problem"], row["data"], row["objective"], row["variant"]) for row in result["rows"]}
    spaces = {name: enumerate_space(known[name].momdp) for name in arguments.problems}
    for variant in arguments.variants:
        for name in arguments.problems:
            for data in arguments.data:
                for label in arguments.objectives:
                    if (name, data, label, variant) in done:
                        continue
                    row = one(known[name], spaces[name], data, label, variant, config)
                    if row is not None:
                        result["rows"].append({"problem": name, **row})
                        write_json(arguments.out, result)


def one(
    problem: Problem, space: AugmentedSpace, data: str, label: str, variant: str, config: TrainingConfig
) -> dict[str, Any] | None:
    """One training, with all that it is compared with."""
    objective = problem.objectives[label]
    if variant == "esr-iql" and objective.regime(problem.momdp.reward.shape[3]) != "ESR":
        return None
    dataset = collect(problem, data == "mixed", seed=0)
    best = solve(space, objective).value
    claimed, plan = planned(space, dataset, objective)
    run = train(dataset, objective, **VARIANTS[variant], config=config, progress=False)
    members = measure(run, space, objective, best)
    shares = [members[i]["gap_share"] for i in run.seeds_of(run.selections[0])]
    row: dict[str, Any] = {
        "commit": code_commit(),
        "settings": config.changed(),
        "data": data,
        "objective": label,
        "definition": objective.name,
        "variant": variant,
        "best": best,
        "data_score": float(objective(dataset.returns)),
        "planned": {"claimed": claimed, "value": plan.outcomes().score(objective)},
        "gap_share_mean": float(np.mean(shares)),
        "gap_share_std": float(np.std(shares, ddof=1)) if len(shares) > 1 else None,
        "selected": run.members[run.selections[0].chosen].params.get("beta"),
        "rule": run.selections[0].rule,
        "seconds": run.seconds,
        "members": members,
    }
    print(
        f"{problem.table.env} {data} {label} {variant}: best {best:.3f} data {row['data_score']:.3f} "
        f"planned {row['planned']['value']:.3f} ({row['seconds']:.0f} s)",
        *(
            f"\n  {m['params']} J {m['score']:.3f} twin {m['twin']:.3f} gap {m['gap_share']:.3f} claimed "
            f"{m['claimed']} off {m['claim_error']} trusted {m['trusted']} R {np.round(m['mean_return'], 3)}"
            for m in members
        ),
        flush=True,
    )
    return row


if __name__ == "__main__":
    main()
