"""What the precision of products in updates does to scores, and to the time of training.

    python experiments/precision.py --out RESULT.json
    python experiments/precision.py --quick --precision bfloat16 highest --out RESULT.json  # on two cores

AETDICE on Fair-Taxi and pointmaze-2obj with the settings of their studies, for ESR, BSR(0.5) and SER, at
two β and three training seeds. A CPU has no TF32, but rounds to bfloat16 and float16 as a GPU does.
"""

import argparse
import datetime
import json
from pathlib import Path
from typing import Any

import jax
import numpy as np

from aetdice.config import TrainingConfig
from aetdice.datasets import load_dataset, make_env, space_of
from aetdice.exact import solve
from aetdice.exact.mixtures import best_mixture
from aetdice.files import versions, write_json
from aetdice.learning.run import gap_share
from aetdice.learning.setup import readable
from aetdice.learning.training import train
from aetdice.objectives import bsr, in_float64
from aetdice.studies import fair_taxi, point_maze
from aetdice.studies.parts import code_commit
from aetdice.studies.study import play_in

ALPHAS = {"ESR": 0.0, "BSR 0.5": 0.5, "SER": 1.0}
CASES = {
    "fair-taxi": (fair_taxi.FULL.config, (1e-3, 1e-4)),
    "pointmaze-2obj": (point_maze.FULL.config, (2e-4, 5e-5)),
}
QUICK = {
    "fair-taxi": (fair_taxi.QUICK.config, (1e-3,)),
    "pointmaze-2obj": (point_maze.QUICK.config, (1e-3,)),
}
EPISODES = 1_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cases", nargs="+", default=list(CASES))
    parser.add_argument("--precision", nargs="+", default=["bfloat16", "tensorfloat32", "highest"])
    parser.add_argument("--seed", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--quick", action="store_true", help="with the settings of the quick studies, one β")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for case in arguments.cases:
        for precision in arguments.precision:
            rows += measure(case, precision, arguments.seed, *(QUICK if arguments.quick else CASES)[case])
            facts = {
                "commit": code_commit(),
                "date": datetime.date.today().isoformat(),
                "versions": versions(),
            }
            device = jax.devices()[0].device_kind
            write_json(arguments.out, {"rows": rows, "episodes": EPISODES, "device": device, **facts})


def measure(
    case: str, precision: str, seeds: list[int], config: TrainingConfig, betas: tuple[float, ...]
) -> list[dict[str, Any]]:
    dataset, env = load_dataset(case), make_env(case)
    objectives = {label: bsr(a, threshold=env.utility_threshold) for label, a in ALPHAS.items()}
    run = train(
        dataset,
        list(objectives.values()),
        algorithm="aetdice",
        seed=seeds,
        beta=betas,
        config=readable(config.adapted({"trainer.precision": precision}), "aetdice"),
        progress=False,
    )
    twins = {member.params["seed"]: member.twin for member in run.members}
    policies = [member.policy for member in run.members] + list(twins.values())
    played = [rollouts.returns for rollouts in play_in(env)(policies, EPISODES)]
    space, rows, each = space_of(env), [], len(run.members) // len(objectives)
    for which, (label, objective) in enumerate(objectives.items()):
        score = in_float64(objective)
        best = (
            best_mixture(objective, dataset.returns).value
            if space is None
            else solve(space, objective, check=False).value
        )
        twin = {seed: float(score(played[len(run.members) + i])) for i, seed in enumerate(twins)}
        for beta in betas:
            found = [
                (member.params["seed"], float(score(played[which * each + i])))
                for i, member in enumerate(run.members[which * each : (which + 1) * each])
                if np.isclose(member.params["beta"], beta)
            ]
            rows.append(
                {
                    "case": case,
                    "precision": precision,
                    "objective": label,
                    "beta": beta,
                    "scores": [value for _, value in found],
                    "best": best,
                    "gap_shares": [gap_share(value, twin[seed], best) for seed, value in found],
                    "seeds": [seed for seed, _ in found],
                    "seconds": run.seconds,
                    "members": len(run.members),
                }
            )
            print(json.dumps(rows[-1]), flush=True)
    return rows


if __name__ == "__main__":
    main()
