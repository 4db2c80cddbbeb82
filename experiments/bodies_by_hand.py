"""Parts of a study of the bodies with other settings than the study's own, on all of its data.

    python experiments/bodies_by_hand.py cobb-douglas OUT PART ... --short
    python experiments/bodies_by_hand.py cobb-douglas OUT PART ... --beta 5e-5

AETDICE has a single β, by default the one that the full study's rule nearly always selects. With
`--short`, three seeds and fewer updates: an afternoon on a CPU.
"""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from aetdice.reproduce.bodies import PLANS, Plan, parts_of, report
from aetdice.reproduce.parts import complete


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("study", choices=PLANS)
    parser.add_argument("out", type=Path)
    parser.add_argument("part", nargs="+")
    parser.add_argument("--beta", type=float, default=3e-4)
    parser.add_argument("--short", action="store_true")
    arguments = parser.parse_args()
    full, quick = PLANS[arguments.study]
    plan = replace(short(full, quick) if arguments.short else full, betas=(arguments.beta,))
    results = complete(parts_of(plan), arguments.out, arguments.part, _say)
    Console().print(report(results, plan, arguments.out))


def short(full: Plan, quick: Plan) -> Plan:
    return replace(
        quick,
        scenes=full.scenes,
        trajectories=full.trajectories,
        seeds=(0, 1, 2),
        episodes=full.episodes,
        config=replace(quick.config, cloning_steps=10_000),
    )


def _say(stage: str, step: int, total: int, metrics: dict[str, Any]) -> None:
    del metrics
    if step == total or step % 2_000 == 0:
        print(f"{stage} {step}/{total}", flush=True)


if __name__ == "__main__":
    main()
