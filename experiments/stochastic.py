"""Random stochastic problems: what the learner attains, beside the exact solution of the same data.

    python experiments/stochastic.py --problems 0 1 2 … --out RESULT.json

Every problem has six states, three actions, eight steps and Dirichlet transitions; 2,000 episodes of
the uniform policy. Gaps are from the cloning twin to the optimum, both computed exactly. `--one-sample`
takes the recorded successor of a step for all that may follow, as the paper's Algorithm 1 does.
"""

import argparse
import datetime
from pathlib import Path
from typing import Any

import jax
import numpy as np

from aetdice.config import TrainingConfig
from aetdice.evaluation.tabulation import tabulated
from aetdice.exact import (
    OfflineProblem,
    TabularMOMDP,
    enumerate_space,
    solve,
    solve_dual,
    uniform_policy,
)
from aetdice.files import versions, write_json
from aetdice.learning import inputs
from aetdice.learning.run import gap_share
from aetdice.learning.training import train
from aetdice.objectives import bsr
from aetdice.studies.parts import code_commit
from aetdice.studies.strangers.chance import random_momdp

OBJECTIVES = {"ESR": 0.0, "SER": 1.0}
BETAS = (1e-1, 1e-2, 1e-3)
STATES, ACTIONS, HORIZON, EPISODES = 6, 3, 8, 2_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--problems", type=int, nargs="+", default=list(range(30)))
    parser.add_argument("--steps", type=int, default=6_000)
    parser.add_argument("--one-sample", action="store_true")
    parser.add_argument("--commit", default=code_commit())
    arguments = parser.parse_args()
    if arguments.one_sample:
        inputs.pooled_outcomes = lambda *_: None
    settings = {
        "dual.steps": arguments.steps,
        "extraction.steps": arguments.steps // 2,
        "trainer.chunk": 1_000,
    }
    config = TrainingConfig().adapted({**settings, "trainer.holdout": 0.0})
    rows: list[dict[str, Any]] = []
    for seed in arguments.problems:
        rows += measure(seed, config)
        write_json(
            arguments.out,
            {
                "one_sample": arguments.one_sample,
                "episodes": EPISODES,
                "settings": config.changed(),
                "rows": rows,
                "commit": arguments.commit,
                "date": datetime.date.today().isoformat(),
                "device": jax.devices()[0].device_kind,
                "versions": versions(),
            },
        )


def problem(seed: int) -> TabularMOMDP:
    return random_momdp(np.random.default_rng([2026, seed]), STATES, ACTIONS, HORIZON)


def measure(seed: int, config: TrainingConfig) -> list[dict[str, Any]]:
    space = enumerate_space(problem(seed))
    dataset = uniform_policy(space).rollout(EPISODES, seed=seed)
    objectives = {name: bsr(alpha) for name, alpha in OBJECTIVES.items()}
    run = train(dataset, list(objectives.values()), beta=BETAS, config=config, progress=False)
    rows = []
    for index, member in enumerate(run.members):
        name = list(OBJECTIVES)[index // len(BETAS)]
        objective, beta = objectives[name], member.params["beta"]
        best = solve(space, objective).value
        exact = solve_dual(OfflineProblem.from_episodes(dataset, objective), beta=beta).policy(space)
        twin, score, reference = (
            policy.outcomes().score(objective)
            for policy in (
                tabulated(member.twin.network, space),
                tabulated(member.policy.network, space),
                exact,
            )
        )
        rows.append(
            {
                "problem": seed,
                "objective": name,
                "beta": beta,
                "gap": gap_share(score, twin, best),
                "exact_gap": gap_share(reference, twin, best),
                "claimed_gap": gap_share(member.diagnostics["claimed_value"], twin, best),
                "trusted": member.verdict.trusted,
            }
        )
        print(rows[-1], flush=True)
    return rows


if __name__ == "__main__":
    main()
