"""The dispatch log that ships with the package: what a policy learned from it is worth in the simulator.

    python experiments/dispatch.py --out RESULT.json

The learner is `train(load_dataset(LOG), objective, seed=s)` with no setting given, for s = 0, 1, 2 and

- ESR and SER, as `esr()` and `ser()` have them;
- an objective of our own: F_i = σ(4(R_i - 1.5)), near 1 where a district was served twice in a shift, and
  G = Σ log k_i: how often each district gets two calls served, none of them left out.

Policies, twins and the dispatchers whose log it is act in 20,000 shifts of the simulator each, with 95 %
bootstrap intervals. Beside them stands the exact J of a policy on the augmented space, what the log itself
scores, what the run claims of its policy (J in the recorded model), and the certified optimum. A policy
"beats" the dispatchers if its interval lies above theirs.

Simulator and objectives were settled before any training and not changed since; optima and the dispatchers'
own scores were looked at.
"""

import argparse
import datetime
import json
import os
from pathlib import Path
from typing import Any

import jax
import numpy as np

from aetdice import Episodes, Objective, TabularMOMDP, esr, load_dataset, ser, solve, train
from aetdice.envs.dispatch import LOG, Dispatch, collect_dispatch
from aetdice.evaluation.rollout import sample_returns
from aetdice.evaluation.tabulation import tabulated
from aetdice.exact import AugmentedSpace, enumerate_space
from aetdice.files import versions, write_json
from aetdice.objectives import written_objective
from aetdice.studies.parts import code_commit

SEEDS = [0, 1, 2]
SHIFTS = 20_000
UTILITY = ", ".join(f"sigmoid(4*(r{i} - 1.5))" for i in range(3))
AGGREGATION = "log(k0) + log(k1) + log(k2)"


def objectives(horizon: int) -> dict[str, Objective]:
    own = written_objective(UTILITY, AGGREGATION, 3, horizon, 0.1, 0.1)
    return {"ESR": esr(), "SER": ser(), "own": own}


def scored(objective: Objective, returns: np.ndarray) -> dict[str, Any]:
    """J with its interval, and the mean return."""
    score = objective.score(returns, jax.random.key(0))
    return {"J": score.value, "low": score.low, "high": score.high, "mean_return": returns.mean(0).tolist()}


def one(
    dataset: Episodes, objective: Objective, seed: int, env: Dispatch, space: AugmentedSpace
) -> dict[str, Any]:
    """A training with nothing set, and what became of it."""
    run = train(dataset, objective, seed=seed, progress=False)
    member = run.members[run.selections[0].chosen]
    policies = {"policy": member.policy, "twin": member.twin}
    row: dict[str, Any] = {"seed": seed, "commit": code_commit(), "seconds": run.seconds}
    for name, policy in policies.items():
        row[name] = scored(objective, sample_returns(policy, env, SHIFTS, 1234))
        row[name]["exact"] = tabulated(policy.network, space).outcomes().score(objective)
    row["claimed"] = member.diagnostics.get("model_value", member.diagnostics.get("claimed_value"))
    row["beta"] = member.params.get("beta")
    row["trusted"], row["verdict"] = member.verdict.trusted, member.verdict.words
    row["every_beta"] = {
        str(each.params.get("beta")): tabulated(each.policy.network, space).outcomes().score(objective)
        for each in run.members
    }
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--objectives", nargs="+", default=["ESR", "SER", "own"])
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS)
    arguments = parser.parse_args()
    env, dataset = Dispatch(), load_dataset(LOG)
    space = enumerate_space(TabularMOMDP.from_environment(env))
    dispatchers = collect_dispatch(env, SHIFTS, seed=1).returns
    result: dict[str, Any] = {"rows": []}
    if arguments.out.is_file():  # a run that was cut off goes on
        result = json.loads(arguments.out.read_text(encoding="utf-8"))
    result |= {
        "shifts": SHIFTS,
        "commit": code_commit(),
        "date": datetime.date.today().isoformat(),
        "device": jax.devices()[0].device_kind,
        "load": os.getloadavg()[0],
        "versions": versions(),
        "notes": list(dataset.notes),
    }
    done = {(row["objective"], row["seed"]) for row in result["rows"]}
    known = objectives(env.horizon)
    for seed in arguments.seeds:
        for name in arguments.objectives:
            if (name, seed) in done:
                continue
            objective = known[name]
            row = {
                "objective": name,
                "definition": objective.name,
                "best": solve(space, objective).value,
                "log": scored(objective, dataset.returns),
                "dispatchers": scored(objective, dispatchers),
                **one(dataset, objective, seed, env, space),
            }
            row["beats"] = row["policy"]["low"] > row["dispatchers"]["high"]
            result["rows"].append(row)
            write_json(arguments.out, result)
            kept = ("objective", "seed", "beats", "best", "claimed", "beta", "trusted", "seconds")
            print({each: row[each] for each in kept}, *(row[p] for p in ("dispatchers", "twin", "policy")),
                  sep="\n  ", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
