"""Walker2d's efficiency with nothing set: Cobb-Douglas of speed without the alive bonus, and effort.

    python experiments/one_recipe_efficiency.py --out RESULT.json
    python experiments/one_recipe_efficiency.py --out RESULT.json --quality amateur --seed 20

The objectives are those of `aetdice reproduce cobb-douglas` in its distance form. Data seed 5, training
seed 10. No setting was chosen on these data.
"""

import argparse
import datetime
import json
from pathlib import Path
from typing import Any

from aetdice.data import Episodes
from aetdice.data.transforms import Chain, Safety, SpeedAndEffort, WithoutBonus, transform_episodes
from aetdice.datasets import load_dataset, make_env
from aetdice.evaluation import sample_returns
from aetdice.files import versions, write_json
from aetdice.learning.training import train
from aetdice.objectives import in_float64
from aetdice.studies.body_objectives import cobb_douglas, in_units_of_data
from aetdice.studies.mujoco import RHOS, TRAINED_EPSILON
from aetdice.studies.parts import code_commit

DATA_SEED, EVALUATION_SEED = 5, 2026
TRANSFORM = Chain((WithoutBonus((1.0, 0.0)), SpeedAndEffort(), Safety()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--quality", default="expert", choices=("expert", "amateur"))
    parser.add_argument("--algorithm", nargs="+", default=["aetdice", "esr-iql"])
    parser.add_argument("--seed", type=int, nargs="+", default=[10])
    parser.add_argument("--rollouts", type=int, default=100, help="of every policy")
    arguments = parser.parse_args()
    dataset = load_dataset("walker2d", quality=arguments.quality, episodes=1_000, seed=DATA_SEED)
    rows: list[dict[str, Any]] = []
    for algorithm in arguments.algorithm:
        rows += measure(dataset, algorithm, arguments)
        facts = {"commit": code_commit(), "date": datetime.date.today().isoformat(), "versions": versions()}
        write_json(arguments.out, {"rows": rows, **facts})
        print(json.dumps(rows[-len(RHOS) :]), flush=True)


def measure(dataset: Episodes, algorithm: str, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    returns = transform_episodes(dataset, TRANSFORM).returns
    trained = [in_units_of_data(cobb_douglas(rho, TRAINED_EPSILON), returns) for rho in RHOS]
    run = train(
        dataset, trained, algorithm=algorithm, seed=arguments.seed, transform=TRANSFORM, progress=False
    )
    env, rows = make_env("walker2d"), []
    for rho, selection in zip(RHOS, run.selections, strict=True):
        members = [run.members[index] for index in run.seeds_of(selection)]
        score = in_float64(cobb_douglas(rho))
        played = [
            [
                float(score(sample_returns(policy, env, arguments.rollouts, EVALUATION_SEED)))
                for policy in member.acting
            ]
            for member in members
        ]
        rows.append(
            {
                "case": f"walker2d, {arguments.quality}, distance only",
                "algorithm": algorithm,
                "objective": f"CD({rho:g})",
                "scores": [policy for policy, _ in played],
                "twins": [twin for _, twin in played],
                "data": float(score(returns)),
                "trusted": [member.verdict.trusted for member in members],
                "chosen": dict(run.chosen),
                "seeds": arguments.seed,
                "episodes": len(dataset),
                "rollouts": arguments.rollouts,
                "seconds": run.seconds,
            }
        )
    return rows


if __name__ == "__main__":
    main()
