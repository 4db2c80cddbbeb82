"""`train(dataset, objective)` with nothing set, on data and seeds that no setting was chosen on.

    python experiments/one_recipe.py --out RESULT.json
    python experiments/one_recipe.py --out RESULT.json --algorithm episode-weighting | esr-iql | fairdice
    python experiments/one_recipe.py --out RESULT.json --effort thorough --cases "three goals, data seed 5"

Fair-Taxi with two data seeds, another layout and the log in shifts, the mazes with other data seeds and
another map, each for ESR, BSR(0.5) and SER; training seeds 10, 11, 12. The reference is the exact optimum
or, in the mazes, the best mixture of recorded episodes. Features are chosen among three that were listed by
looking at the mazes with data seed 0; nothing else was.
"""

import argparse
import datetime
import json
from pathlib import Path
from typing import Any

import jax

from aetdice.datasets import load_dataset, make_env, space_of
from aetdice.exact import solve
from aetdice.exact.mixtures import best_mixture
from aetdice.files import versions, write_json
from aetdice.learning.run import gap_share
from aetdice.learning.training import train
from aetdice.objectives import bsr
from aetdice.studies.parts import code_commit

ALPHAS = {"ESR": 0.0, "BSR 0.5": 0.5, "SER": 1.0}
LAYOUT = {"origins": ((0, 4), (8, 0)), "destinations": ((2, 8), (5, 3)), "start": (4, 6), "horizon": 60}
MAP = "####### / #A...## / #.##..# / #..S#.# / ###..B# / #######"
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "Fair-Taxi, data seed 5": ("fair-taxi", {"seed": 5}),
    "Fair-Taxi, data seed 6": ("fair-taxi", {"seed": 6}),
    "Fair-Taxi, another layout": ("fair-taxi", {"seed": 5, **LAYOUT}),
    "two goals, data seed 5": ("pointmaze-2obj", {"seed": 5}),
    "three goals, data seed 5": ("pointmaze-3obj", {"seed": 5}),
    "two goals on another map": ("pointmaze-2obj", {"seed": 5, "layout": MAP}),
    "Fair-Taxi in shifts, data seed 5": ("fair-taxi", {"seed": 5, "quality": "shifts"}),
}
EPISODES = 1_000
TRAINED_FOR = {
    "aetdice": tuple(ALPHAS),
    "episode-weighting": tuple(ALPHAS),
    "esr-iql": ("ESR",),
    "fairdice": ("SER",),
}
"""What each algorithm can optimise."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cases", nargs="+", default=list(CASES))
    parser.add_argument("--seed", type=int, nargs="+", default=[10, 11, 12])
    parser.add_argument("--algorithm", default="aetdice", choices=list(TRAINED_FOR))
    parser.add_argument("--effort", default="standard", choices=("quick", "standard", "thorough"))
    arguments = parser.parse_args()
    known = json.loads(arguments.out.read_text(encoding="utf-8"))["rows"] if arguments.out.exists() else []
    how = {"algorithm": arguments.algorithm, "effort": arguments.effort}
    for case in arguments.cases:
        if any({**row, "case": case, **how} == row for row in known):
            continue
        known += measure(case, arguments.seed, how)
        facts = {"commit": code_commit(), "date": datetime.date.today().isoformat(), "versions": versions()}
        device = jax.devices()[0].device_kind
        write_json(arguments.out, {"rows": known, "episodes": EPISODES, "device": device, **facts})


def measure(case: str, seeds: list[int], how: dict[str, Any]) -> list[dict[str, Any]]:
    name, options = CASES[case]
    dataset = load_dataset(name, **options)
    env = make_env(name, **{key: value for key, value in options.items() if key not in ("seed", "quality")})
    labels = TRAINED_FOR[how["algorithm"]]
    objectives = {label: bsr(ALPHAS[label], threshold=env.utility_threshold) for label in labels}
    run = train(dataset, list(objectives.values()), seed=seeds, progress=False, **how)
    space, rows = space_of(env), []
    for (label, objective), selection in zip(objectives.items(), run.selections, strict=True):
        recorded = best_mixture(objective, dataset.returns).value
        best = recorded if space is None else solve(space, objective, check=False).value
        members = run.seeds_of(selection)
        scores = [run.evaluate(env, EPISODES, member=member) for member in members]
        rows.append(
            {
                "case": case,
                **how,
                "objective": label,
                "scores": [each.policy.score for each in scores],
                "twins": [each.twin.score for each in scores],
                "data": float(objective.score(dataset.returns, jax.random.key(0)).value),
                "best": best,
                "best_recorded": recorded,
                "gap_shares": [gap_share(each.policy.score, each.twin.score, best) for each in scores],
                "claimed": [run.members[member].diagnostics.get("claimed_value") for member in members],
                "joined_share": [run.members[member].diagnostics.get("joined_share") for member in members],
                "trusted": [run.members[member].verdict.trusted for member in members],
                "sample_size": run.members[members[0]].params.get("sample_size"),
                "chosen": dict(run.chosen),
                "seeds": seeds,
                "seconds": run.seconds,
            }
        )
        print(rows[-1], flush=True)
    return rows


if __name__ == "__main__":
    main()
