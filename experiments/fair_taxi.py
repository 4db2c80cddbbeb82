"""Fair-Taxi in full: BSR over α, three β and three seeds as one population, β chosen without the environment.

    python experiments/fair_taxi.py --out experiments/results/fair_taxi.json

Made for a GPU (about six minutes on an H200). For every α it trains, chooses β by the rule of
`aetdice.runs.select`, and reports sampled scores of the learner, its twin, the data and the exact
optimum. `--quick` is a few minutes on two CPU cores and only shows that the script runs.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

from aetdice.envs import FairTaxi
from aetdice.envs.taxi_data import collect_fair_taxi
from aetdice.evaluation import rollout_returns
from aetdice.exact import TabularMOMDP, enumerate_space, solve
from aetdice.objectives import bsr, esr, ser
from aetdice.config import TrainingConfig
from aetdice.results import versions, write_json
from aetdice.runs import Member, select
from aetdice.training import train

ALPHAS = (0.0, 0.25, 0.5, 0.75, 1.0)
BETAS = (1e-3, 3e-4, 1e-4)
SEEDS = (0, 1, 2)
EVALUATION_EPISODES = 4000
COLUMNS = {"ESR": esr(), "BSR[alpha=0.5]": bsr(0.5), "SER": ser()}
FULL = TrainingConfig(
    hidden=(256, 256, 256), batch=1024, value_steps=24_000, cloning_steps=6_000, holdout=0.1, chunk=2_000
)
QUICK = TrainingConfig(hidden=(32, 32), batch=64, value_steps=200, cloning_steps=100, holdout=0.1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    config, seeds = (QUICK, SEEDS[:1]) if arguments.quick else (FULL, SEEDS)
    taxi = FairTaxi()
    dataset = collect_fair_taxi(taxi)
    started = time.perf_counter()

    def report(stage: str, step: int, total: int, _: dict[str, Any]) -> None:
        print(f"{stage} {step}/{total} {time.perf_counter() - started:.0f} s", flush=True)

    run = train(dataset, [bsr(a) for a in ALPHAS], beta=BETAS, seed=seeds, config=config, report=report)
    trained = time.perf_counter() - started
    key = jax.random.key(20_26)
    twins = {
        member.params["seed"]: rollout_returns(member.twin.policy, taxi, EVALUATION_EPISODES, key)
        for member in run.members[: len(seeds)]
    }
    rows = [_row(member, taxi, twins[member.params["seed"]], key) for member in run.members]
    space = enumerate_space(TabularMOMDP.from_environment(taxi))
    table = []
    for index, alpha in enumerate(ALPHAS):
        size = len(BETAS) * len(seeds)
        members = run.members[index * size : (index + 1) * size]
        chosen, rule = select(members)
        beta = members[chosen].params["beta"]
        same = [rows[index * size + i] for i, m in enumerate(members) if m.params["beta"] == beta]
        optimum = solve(space, bsr(alpha))
        table.append(
            {
                "alpha": alpha,
                "beta": beta,
                "rule": rule,
                "exact": optimum.value,
                "data": float(bsr(alpha)(np.asarray(dataset.returns, np.float32))),
                **{name: _spread(same, name) for name in ("score", "twin", *COLUMNS)},
                "gap_share": [(r["score"] - r["twin"]) / (optimum.value - r["twin"]) for r in same],
            }
        )
        print(json.dumps(table[-1]), flush=True)
    write_json(
        arguments.out,
        {
            "table": table,
            "members": rows,
            "seconds": {"training": trained, "all": time.perf_counter() - started},
            "evaluation_episodes": EVALUATION_EPISODES,
            "device": str(jax.devices()[0]),
            "versions": versions(),
        },
    )


def _row(member: Member, taxi: FairTaxi, twin: jax.Array, key: jax.Array) -> dict[str, Any]:
    returns = rollout_returns(member.policy.policy, taxi, EVALUATION_EPISODES, key)
    row = {
        **member.params,
        "score": float(member.objective(returns)),
        "twin": float(member.objective(twin)),
        **{name: float(objective(returns)) for name, objective in COLUMNS.items()},
        "shares": {
            "both": float(np.mean(np.all(np.asarray(returns) > 0, axis=1))),
            "only group 0": float(np.mean((returns[:, 0] > 0) & (returns[:, 1] <= 0))),
            "only group 1": float(np.mean((returns[:, 0] <= 0) & (returns[:, 1] > 0))),
        },
        "diagnostics": member.diagnostics,
    }
    print(json.dumps({k: v for k, v in row.items() if k not in ("diagnostics", "learning_rate")}), flush=True)
    return row


def _spread(rows: list[dict[str, Any]], name: str) -> dict[str, float]:
    values = [row[name] for row in rows]
    return {"mean": float(np.mean(values)), "std": float(np.std(values))}


if __name__ == "__main__":
    main()
