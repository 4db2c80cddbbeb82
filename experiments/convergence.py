"""How near the learner's dual comes to the exact one on Fair-Taxi, over the whole dataset.

    python experiments/convergence.py --out RESULT.json

Trains ESR, BSR(0.5) and SER at one β with large batches (made for a GPU) and compares the dual value,
the mass of every time step and the ratios with the exact solution of the regularised problem.
"""

import argparse
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console

from aetdice.config import TrainingConfig
from aetdice.datasets import load_dataset, make_env
from aetdice.evaluation import sample_returns
from aetdice.evaluation.scores import score_returns
from aetdice.exact import OfflineProblem, solve_dual
from aetdice.files import versions, write_json
from aetdice.learning.training import train
from aetdice.objectives import bsr
from aetdice.report.tables import columns
from aetdice.studies.parts import code_commit

OBJECTIVES = {"ESR": 0.0, "BSR 0.5": 0.5, "SER": 1.0}
EPISODES = 4000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--beta", type=float, default=1e-3)
    parser.add_argument("--hidden", type=int, nargs="+", default=[256, 256, 256])
    parser.add_argument("--batch", type=int, default=8_192)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--extraction-steps", type=int, default=6_000)
    parser.add_argument("--seed", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--precision", default="tensorfloat32")
    arguments = parser.parse_args()
    config = TrainingConfig().adapted(
        {
            "network.hidden": tuple(arguments.hidden),
            "dual.batch": arguments.batch,
            "dual.steps": arguments.steps,
            "dual.refit": "layer",
            "extraction.batch": arguments.batch,
            "extraction.steps": arguments.extraction_steps,
            "trainer.precision": arguments.precision,
            "trainer.holdout": 0.0,
            "trainer.chunk": 1_000,
        }
    )
    taxi, episodes = make_env("fair-taxi"), load_dataset("fair-taxi")
    objectives = [bsr(alpha) for alpha in OBJECTIVES.values()]
    exact = [
        solve_dual(OfflineProblem.from_episodes(episodes, objective), arguments.beta).value
        for objective in objectives
    ]
    run = train(episodes, objectives, beta=arguments.beta, seed=arguments.seed, config=config, progress=_say)
    rows = []
    for i, member in enumerate(run.members):
        own = i // len(arguments.seed)
        returns = sample_returns(member.policy, taxi, EPISODES, seed=0)
        rows.append(
            {
                "objective": list(OBJECTIVES)[own],
                "seed": member.params["seed"],
                "exact_dual": exact[own],
                "excess": member.diagnostics["dual_value"] - exact[own],
                "score": score_returns(returns, {"trained": member.objective}).score,
                "diagnostics": member.diagnostics,
            }
        )
    write_json(
        arguments.out,
        {
            "beta": arguments.beta,
            "config": {name: value for name, value in vars(arguments).items() if name != "out"},
            "rows": rows,
            "seconds": run.seconds,
            "commit": code_commit(),
            "device": jax.devices()[0].device_kind,
            "versions": versions(),
        },
    )
    Console(width=120).print(_table(rows))


def _say(stage: str, step: int, total: int, metrics: dict[str, Any]) -> None:
    if "dual_value" in metrics:
        print(stage, f"{step}/{total}", np.round(metrics["dual_value"], 4).tolist(), flush=True)


def _table(rows: list[dict[str, Any]]) -> Any:
    table = columns(
        "learner against exact dual", "objective", "seed", "exact", "excess", "mass over time", "J"
    )
    for row in rows:
        low, high = row["diagnostics"]["mass_range"]
        cells = (f"{row['exact_dual']:.4f}", f"{row['excess']:+.4f}", f"{low:.3f} to {high:.3f}")
        table.add_row(row["objective"], str(row["seed"]), *cells, f"{row['score']:.3f}")
    return table


if __name__ == "__main__":
    main()
