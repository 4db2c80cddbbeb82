"""Estimates of J from a log alone, against the truth: coverage, width and support over many policies.

    python experiments/estimation.py --out RESULT.json [--families momdp narrow taxi mo-gym maze]
    python experiments/estimation.py --out RESULT.json --figure PICTURE.png

A policy is learned from nine tenths of a dataset and estimated from the tenth that was kept. Truth is exact
where the problem can be enumerated, else the mean of sampled episodes. Every policy, the cloning twin among
them, is estimated under every objective. A run that was cut off goes on.
"""

import argparse
import datetime
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from aetdice.config import TrainingConfig
from aetdice.data import Episodes
from aetdice.datasets import load_dataset, make_env
from aetdice.envs.environment import FiniteEnvironment
from aetdice.estimation import estimate
from aetdice.estimation.acting import Acting, acting_of
from aetdice.estimation.tabular_acting import TabularActing
from aetdice.evaluation import sample_returns
from aetdice.evaluation.tabulation import tabulated
from aetdice.exact import (
    AugmentedSpace,
    OfflineProblem,
    TabularMOMDP,
    TabularPolicy,
    enumerate_space,
    solve,
    solve_dual,
    uniform_policy,
)
from aetdice.files import versions, write_json
from aetdice.learning.training import train
from aetdice.objectives import Objective, bsr, in_float64
from aetdice.studies.parts import code_commit

KEPT = 0.1
TRUTH_EPISODES = 4_000
SHORT = {"network.hidden": (64,), "dual.steps": 1_000, "extraction.steps": 1_000}
MAZE = {
    "network.observation_fourier": 3,
    "network.fourier": 3,
    "extraction.steps": 2_500,
}


class Case(NamedTuple):
    """A policy under an objective, the log to estimate it from, and what is true."""

    family: str
    problem: str
    policy: str
    label: str
    acting: Acting
    behaviour: Acting | None
    log: Episodes
    seen: Episodes
    objective: Objective
    horizon: int
    truth: Callable[[], float]
    gap: Callable[[], float]
    """Between the behaviour's twin and the best policy known."""


def parts(data: Episodes, seed: int) -> tuple[Episodes, Episodes]:
    order = np.random.default_rng(seed).permutation(len(data))
    count = round(KEPT * len(data))
    return data.select(np.sort(order[count:])), data.select(np.sort(order[:count]))


def random_policy(space: AugmentedSpace, seed: int) -> TabularPolicy:
    rng = np.random.default_rng(seed)
    actions = space.momdp.actions
    rows = [rng.dirichlet(np.full(actions, 0.5), layer.live.size) for layer in space.layers[:-1]]
    return TabularPolicy(space, rows)


def blended(one: TabularPolicy, other: TabularPolicy) -> TabularPolicy:
    pairs = zip(one.probabilities, other.probabilities, strict=True)
    return TabularPolicy(one.space, [(a + b) / 2 for a, b in pairs])


def momdp_cases(count: int) -> Iterator[Case]:
    """Random stochastic problems: regularised solutions of the data, optima, random policies, mixtures."""
    import stochastic

    for seed in range(count):
        space = enumerate_space(stochastic.problem(seed))
        behaviour = uniform_policy(space)
        label, objective = [("ESR", bsr(0.0)), ("BSR", bsr(0.5)), ("SER", bsr(1.0))][seed % 3]
        best = solve(space, objective)
        gap = best.value - behaviour.outcomes().score(objective)
        for episodes in (1_000, 4_000):
            training, log = parts(behaviour.rollout(episodes, seed=seed), seed)
            problem = OfflineProblem.from_episodes(training, objective)
            learned = solve_dual(problem, beta=0.01).policy(space)
            policies = {
                "behaviour": behaviour,
                "random": random_policy(space, seed),
                "learned": learned,
                "optimum": best.policy,
                "half optimum": blended(best.policy, behaviour),
            }
            for name, policy in policies.items():
                yield Case(
                    family="momdp",
                    problem=f"{seed}, {episodes} episodes",
                    policy=name,
                    label=label,
                    acting=TabularActing(policy),
                    behaviour=TabularActing(behaviour),
                    log=log,
                    seen=training,
                    objective=objective,
                    horizon=stochastic.HORIZON,
                    truth=lambda policy=policy, o=objective: policy.outcomes().score(o),
                    gap=lambda gap=gap: gap,
                )


def narrow_cases(count: int) -> Iterator[Case]:
    """Little data of a behaviour that hardly varies: much of what other policies do was never recorded."""
    import stochastic

    for seed in range(count):
        space = enumerate_space(stochastic.problem(100 + seed))
        rng = np.random.default_rng([7, seed])
        usual = np.eye(stochastic.ACTIONS)[rng.integers(stochastic.ACTIONS, size=space.momdp.states)]
        shares = [0.98 * usual[layer.state[layer.live]] + 0.02 / 3 for layer in space.layers[:-1]]
        behaviour = TabularPolicy(space, shares)
        objective = bsr(0.5)
        best = solve(space, objective)
        training, log = parts(behaviour.rollout(200, seed=seed), seed)
        policies = {"behaviour": behaviour, "uniform": uniform_policy(space), "optimum": best.policy}
        for name, policy in policies.items():
            yield Case(
                family="narrow",
                problem=f"{100 + seed}, 200 episodes",
                policy=name,
                label="BSR",
                acting=TabularActing(policy),
                behaviour=TabularActing(behaviour),
                log=log,
                seen=training,
                objective=objective,
                horizon=stochastic.HORIZON,
                truth=lambda policy=policy, o=objective: policy.outcomes().score(o),
                gap=lambda b=best, p=behaviour, o=objective: b.value - p.outcomes().score(o),
            )


def neural_cases(
    family: str,
    problem: str,
    data: Episodes,
    objectives: dict[str, Objective],
    config: TrainingConfig,
    space: AugmentedSpace | None,
    returns: Callable[[Any], np.ndarray] | None = None,
    **options: Any,
) -> Iterator[Case]:
    """One training for all objectives; every policy and the twin under every objective."""
    horizon = options.pop("horizon")
    training, log = parts(data, 0)
    run = train(
        training, list(objectives.values()), horizon=horizon, config=config, progress=False, **options
    )
    found = {f"trained for {n}": m.policy for n, m in zip(objectives, run.members, strict=True)}
    found["twin"] = run.members[0].twin
    outcomes: dict[str, Any] = {}

    def scored(name: str, objective: Objective) -> float:
        if name not in outcomes:
            if space is not None:
                outcomes[name] = tabulated(found[name].network, space).outcomes()
            else:
                outcomes[name] = returns(found[name])
        known = outcomes[name]
        if space is not None:
            return float(known.score(objective))
        return float(in_float64(objective)(known))

    def gap_of(objective: Objective) -> float:
        best = (
            solve(space, objective, check=False).value
            if space is not None
            else max(scored(name, objective) for name in found)
        )
        return best - scored("twin", objective)

    for name, policy in found.items():
        for label, objective in objectives.items():
            yield Case(
                family=family,
                problem=problem,
                policy=name,
                label=label,
                acting=acting_of(policy),
                behaviour=acting_of(run.members[0].twin),
                log=log,
                seen=training,
                objective=objective,
                horizon=horizon,
                truth=lambda name=name, o=objective: scored(name, o),
                gap=lambda o=objective: gap_of(o),
            )


def taxi_cases(count: int) -> Iterator[Case]:
    """Layouts drawn at random, every other one with slip."""
    objectives = {"ESR": bsr(0.0), "BSR": bsr(0.5), "SER": bsr(1.0)}
    for seed in range(count):
        rng = np.random.default_rng([19, seed])
        cells = [divmod(int(c), 5) for c in rng.permutation(25)[:5]]
        layout = {
            "size": 5,
            "origins": tuple(cells[:2]),
            "destinations": tuple(cells[2:4]),
            "start": cells[4],
        }
        slip = 0.1 * (seed % 2)
        env = make_env("fair-taxi", horizon=20, slip=slip, **layout)
        assert isinstance(env, FiniteEnvironment)
        data = load_dataset("fair-taxi", horizon=20, slip=slip, episodes=2_000, seed=seed, **layout)
        space = enumerate_space(TabularMOMDP.from_environment(env))
        config = TrainingConfig().adapted(SHORT)
        yield from neural_cases(
            "fair-taxi",
            f"layout {seed}, slip {slip:g}",
            data,
            objectives,
            config,
            space,
            horizon=20,
            beta=1e-2,
        )


def gym_cases(count: int) -> Iterator[Case]:
    """MO-Gymnasium's resource-gathering and fishwood."""
    import mo_gym

    for name, problem in mo_gym.problems().items():
        space = enumerate_space(problem.momdp)
        for mixed in (False, True)[:count]:
            data = mo_gym.collect(problem, mixed, seed=0)
            for label, objective in problem.objectives.items():
                yield from neural_cases(
                    name,
                    f"{name}, {'mixed' if mixed else 'random'}, {label}",
                    data,
                    {label: objective},
                    TrainingConfig().adapted(SHORT),
                    space,
                    horizon=problem.horizon,
                    beta=1e-2,
                )


def maze_cases(count: int) -> Iterator[Case]:
    """PointMaze with two and three goals, with and without slip; truth from sampled episodes."""
    for index in range(count):
        name, slip = ("pointmaze-2obj", "pointmaze-3obj")[index % 2], (0.0, 0.0, 0.1, 0.1)[index % 4]
        arguments = {"slip": slip} if slip else {}
        env = make_env(name, **arguments)
        data = load_dataset(name, episodes=1_500, seed=20 + index, **arguments)
        objectives = {label: bsr(alpha, threshold=0.01) for label, alpha in (("ESR", 0.0), ("SER", 1.0))}
        yield from neural_cases(
            "maze",
            f"{name}, slip {slip:g}, seed {20 + index}",
            data,
            objectives,
            TrainingConfig().adapted(MAZE),
            None,
            lambda policy, env=env: sample_returns(policy, env, TRUTH_EPISODES, 99),
            horizon=env.horizon,
            algorithm="episode-weighting",
        )


FAMILIES: dict[str, tuple[Callable[[int], Iterator[Case]], int]] = {
    "momdp": (momdp_cases, 24),
    "narrow": (narrow_cases, 16),
    "taxi": (taxi_cases, 8),
    "mo-gym": (gym_cases, 2),
    "maze": (maze_cases, 4),
}


def measured(case: Case) -> dict[str, Any]:
    began = time.perf_counter()
    found = estimate(
        case.acting, case.log, case.objective, twin=case.behaviour, seen=case.seen, horizon=case.horizon
    )
    seconds, truth = time.perf_counter() - began, case.truth()
    record = compact(found.record())
    return {
        "family": case.family,
        "problem": case.problem,
        "policy": case.policy,
        "objective": case.label,
        "truth": truth,
        "gap": case.gap(),
        "covered": found.interval.low <= truth <= found.interval.high,
        "word": found.support.word,
        "seconds": seconds,
        "estimate": record,
    }


def compact(record: dict[str, Any]) -> dict[str, Any]:
    """What is looked at afterwards."""
    names = ("value", "low", "high", "disagreement", "improvement")
    heard = {name: each["value"] for name, each in record["estimators"].items() if each["heard"]}
    support = {name: record["support"][name] for name in ("unknown", "thin", "effective_episodes")}
    return {**{name: record[name] for name in names}, "support": support, "heard": heard}


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Coverage of what is called supported, share called so, and what is far off, by family and in all."""

    def told(some: list[dict[str, Any]]) -> dict[str, Any]:
        supported = [row for row in some if row["word"] == "supported"]
        half = [(row["estimate"]["high"] - row["estimate"]["low"]) / 2 for row in some]
        off = [
            row
            for row, width in zip(some, half, strict=True)
            if abs(row["estimate"]["value"] - row["truth"]) > 2 * width
        ]
        widths = [
            width / row["gap"]
            for row, width in zip(some, half, strict=True)
            if row["word"] == "supported" and row["gap"] > 0
        ]
        return {
            "pairs": len(some),
            "supported": len(supported) / len(some),
            "covered_of_supported": float(np.mean([r["covered"] for r in supported])) if supported else None,
            "covered": float(np.mean([row["covered"] for row in some])),
            "off_by_two": len(off),
            "off_by_two_supported": sum(row["word"] == "supported" for row in off),
            "median_half_of_gap": float(np.median(widths)) if widths else None,
            "median_seconds": float(np.median([row["seconds"] for row in some])),
        }

    families = sorted({row["family"] for row in rows})
    return {"all": told(rows)} | {f: told([r for r in rows if r["family"] == f]) for f in families}


WORDS = {"supported": "tab:blue", "extrapolating": "tab:orange", "do not trust": "tab:red"}


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Estimate against truth, a panel for each family."""
    import matplotlib.pyplot as plt

    families = sorted({row["family"] for row in rows})
    figure, axes = plt.subplots(1, len(families), figsize=(3.4 * len(families), 3.6), squeeze=False)
    for ax, family in zip(axes[0], families, strict=True):
        for word, colour in WORDS.items():
            some = [row for row in rows if (row["family"], row["word"]) == (family, word)]
            truth = [row["truth"] for row in some]
            value = [row["estimate"]["value"] for row in some]
            bars = [[v - row["estimate"]["low"] for v, row in zip(value, some, strict=True)],
                    [row["estimate"]["high"] - v for v, row in zip(value, some, strict=True)]]  # fmt: skip
            ax.errorbar(truth, value, bars, fmt="o", ms=3, lw=0.8, color=colour, label=word, alpha=0.7)
        ends = [row["truth"] for row in rows if row["family"] == family]
        ax.axline((min(ends), min(ends)), slope=1, color="grey", lw=0.8)
        ax.set(title=family, xlabel="true J", ylabel="estimate" if ax is axes[0][0] else "")
    axes[0][0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--families", nargs="+", default=list(FAMILIES))
    parser.add_argument("--count", type=int, help="problems per family, for a shorter run")
    parser.add_argument("--figure", type=Path, help="draw the results that there are")
    parser.add_argument("--commit", default=code_commit())
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    if arguments.out.is_file():
        rows = json.loads(arguments.out.read_text(encoding="utf-8"))["rows"]
    if arguments.figure is not None:
        draw(rows, arguments.figure)
        return
    done = {(row["family"], row["problem"], row["policy"], row["objective"]) for row in rows}
    for family in arguments.families:
        make, usual = FAMILIES[family]
        for case in make(arguments.count or usual):
            if (case.family, case.problem, case.policy, case.label) in done:
                continue
            rows.append(measured(case))
            row = rows[-1]
            print(
                f"{row['family']} {row['problem']} {row['policy']} {row['objective']}: "
                f"{row['estimate']['value']:.3f} ({row['estimate']['low']:.3f} to "
                f"{row['estimate']['high']:.3f}), truth {row['truth']:.3f}, {row['word']}, "
                f"unknown {row['estimate']['support']['unknown']:.3f}, "
                f"rests on {row['estimate']['support']['effective_episodes']:.0f}, {row['seconds']:.1f} s",
                flush=True,
            )
            write_json(
                arguments.out,
                {
                    "level": 0.9,
                    "kept": KEPT,
                    "summary": summary(rows),
                    "rows": rows,
                    "commit": arguments.commit,
                    "date": datetime.date.today().isoformat(),
                    "device": jax.devices()[0].device_kind,
                    "versions": versions(),
                },
            )


if __name__ == "__main__":
    main()
