"""Ant and Walker2d with nothing set: AETDICE, whole episodes weighed, and FairDICE, on one budget.

    python experiments/one_recipe_bodies.py --out RESULT.json
    python experiments/one_recipe_bodies.py --out RESULT.json --cases "ant, expert, c = (1, 1)" --seed 20

The objective is that of the studies, Σ log E[exp(R_i / 50)] of min-max-normalised rewards times c. FairDICE
cannot have a nonlinear F: it trains for Σ log E[R_i]. Data seed 5, training seeds 10 to 12. No setting was
chosen on these data or seeds; those to choose from were listed by looking at the mazes.
"""

import argparse
import datetime
import json
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from aetdice.data import Episodes
from aetdice.data.transforms import MinMax
from aetdice.datasets import load_dataset, make_env
from aetdice.evaluation import Policy, sample_returns
from aetdice.exact.mixtures import best_mixture
from aetdice.files import versions, write_json
from aetdice.learning.training import train
from aetdice.objectives import in_float64, ser
from aetdice.studies.mujoco import CONCAVE, REFERENCE
from aetdice.studies.parts import code_commit

ALGORITHMS = ("aetdice", "episode-weighting", "fairdice")
DATA_SEED, EVALUATION_SEED = 5, 2026


class Case(NamedTuple):
    """Whose data of which quality, and the factors of its rewards."""

    body: str
    quality: str
    factors: tuple[float, float]

    @property
    def name(self) -> str:
        return f"{self.body}, {self.quality}, c = ({', '.join(f'{c:g}' for c in self.factors)})"


CASES = {
    case.name: case
    for case in (
        *(Case("ant", quality, (c, 1.0)) for c in (1.0, 2.0) for quality in ("expert", "amateur")),
        *(Case("walker2d", quality, (1.0, 1.0)) for quality in ("expert", "amateur")),
    )
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cases", nargs="+", default=list(CASES))
    parser.add_argument("--algorithm", nargs="+", default=list(ALGORITHMS), choices=ALGORITHMS)
    parser.add_argument("--seed", type=int, nargs="+", default=[10, 11, 12])
    parser.add_argument("--effort", default="standard", choices=("quick", "standard", "thorough"))
    parser.add_argument("--episodes", type=int, default=1_000, help="of the data")
    parser.add_argument("--rollouts", type=int, default=100, help="of every policy")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for case in map(CASES.__getitem__, arguments.cases):
        dataset = load_dataset(case.body, quality=case.quality, episodes=arguments.episodes, seed=DATA_SEED)
        for algorithm in arguments.algorithm:
            rows.append(measure(case, dataset, algorithm, arguments))
            facts = {
                "commit": code_commit(),
                "date": datetime.date.today().isoformat(),
                "device": jax.devices()[0].device_kind,
                "versions": versions(),
            }
            write_json(arguments.out, {"rows": rows, **facts})
            print(json.dumps(rows[-1]), flush=True)


def measure(case: Case, dataset: Episodes, algorithm: str, arguments: argparse.Namespace) -> dict[str, Any]:
    env, score = make_env(case.body), in_float64(CONCAVE)
    transform = MinMax.fit(dataset.select(np.arange(min(REFERENCE, len(dataset)))), case.factors)
    run = train(
        dataset,
        ser() if algorithm == "fairdice" else CONCAVE,
        algorithm=algorithm,
        seed=arguments.seed,
        transform=transform,
        effort=arguments.effort,
        progress=False,
    )
    [selection] = run.selections
    members = [run.members[index] for index in run.seeds_of(selection)]

    def played(policies: list[Policy]) -> list[float]:
        found = (sample_returns(policy, env, arguments.rollouts, EVALUATION_SEED) for policy in policies)
        return [float(score(returns)) for returns in found]

    return {
        "case": case.name,
        "algorithm": algorithm,
        "effort": arguments.effort,
        "objective": run.selected.objective.name,
        "scores": played([member.policy for member in members]),
        "twins": played([member.twin for member in members]),
        "data": float(score(run.data_returns)),
        "best_recorded": best_mixture(CONCAVE, run.data_returns).value,
        "trusted": [member.verdict.trusted for member in members],
        "params": {name: value for name, value in members[0].params.items() if name != "seed"},
        "rule": selection.rule,
        "chosen": dict(run.chosen),
        "seeds": arguments.seed,
        "episodes": len(dataset),
        "rollouts": arguments.rollouts,
        "seconds": run.seconds,
    }


if __name__ == "__main__":
    main()
