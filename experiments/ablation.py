"""What makes the difference on Fair-Taxi: one change at a time, same budget, three seeds.

    python experiments/ablation.py --out experiments/results/ablation

Every variant trains ESR, BSR(0.5) and SER at β = 1e-3 on the whole dataset, nine members in one
population, with the default training except that ν's last layer is refitted and a floor of 1 % is
kept. A variant is a part of the study: it is saved when done, and `--only NAME …` does some of them.
Made for a processor with many cores, one variant on each; the precisions differ on an accelerator
only.
"""

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from aetdice.config import TrainingConfig
from aetdice.datasets import load_dataset, make_env, space_of
from aetdice.exact import OfflineProblem, solve_dual
from aetdice.files import versions, write_json
from aetdice.learning.run import gap_share, summarise
from aetdice.learning.training import train
from aetdice.objectives import bsr
from aetdice.progress import Progress
from aetdice.report.tables import columns
from aetdice.studies.parts import Part, code_commit
from aetdice.studies.running import complete

BETA, SEEDS, EPISODES = 1e-3, (0, 1, 2), 2000
OBJECTIVES = {"ESR": 0.0, "BSR 0.5": 0.5, "SER": 1.0}
BASE = TrainingConfig().adapted(
    {"dual.refit": "layer", "extraction.floor": 0.01, "trainer.chunk": 2_000, "trainer.holdout": 0.0}
)
VARIANTS: dict[str, dict[str, Any]] = {
    "reference": {},
    "constants refitted": {"dual.refit": "constants"},
    "constants refitted, no floor": {"dual.refit": "constants", "extraction.floor": 0.0},
    "nothing refitted": {"dual.refit": "none"},
    "nothing refitted, one constant": {"dual.refit": "none", "ablation.offsets": False},
    "a head per step": {"ablation.time": "heads"},
    "heads, time augmentation": {"ablation.time": "augmented"},
    "single steps": {"dual.window": 1},
    "beta fixed": {"dual.first_beta": BETA},
    "no averaging": {"dual.averaging": 0.0},
    "weights in the loss": {"ablation.weighted_loss": True},
    "no floor": {"extraction.floor": 0.0},
    "floor 0.05": {"extraction.floor": 0.05},
    "reward at the end": {"reward.terminal": True},
    "soft-chi2": {"dual.divergence": "soft-chi2"},
    "kl": {"dual.divergence": "kl"},
    "tensorfloat32": {"trainer.precision": "tensorfloat32"},
    "bfloat16": {"trainer.precision": "bfloat16"},
}
PRECISIONS = ("tensorfloat32", "bfloat16")
"""Without effect on a CPU, so done only when named."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="these variants, by name")
    arguments = parser.parse_args()
    parts = [Part("exact", {"beta": BETA}, _exact), *map(_variant, VARIANTS)]
    only = [_slug(name) for name in arguments.only] or [p.name for p in parts if p.name not in PRECISIONS]
    results = complete(parts, arguments.out, only, _say)
    rows = {name: results[_slug(name)] for name in VARIANTS if _slug(name) in results}
    variants = {name: _summary(row, results) for name, row in rows.items()}
    write_json(
        arguments.out / "summary.json",
        {"commit": code_commit(), "versions": versions(), "variants": variants},
    )
    Console(width=150).print(_table(rows, results))


def _say(stage: str, step: int, total: int, _: dict[str, Any]) -> None:
    if step == total:
        print(stage, step, flush=True)


def _slug(name: str) -> str:
    return name.replace(",", "").replace(" ", "-")


def _exact(folder: Path, progress: Progress) -> dict[str, Any]:
    """The regularised dual of the whole dataset, per objective."""
    del folder, progress
    episodes = load_dataset("fair-taxi")
    problems = {name: OfflineProblem.from_episodes(episodes, bsr(a)) for name, a in OBJECTIVES.items()}
    return {name: solve_dual(problem, BETA).value for name, problem in problems.items()}


def _variant(name: str) -> Part:
    config = BASE.adapted(VARIANTS[name])

    def work(folder: Path, progress: Progress) -> dict[str, Any]:
        taxi = make_env("fair-taxi")
        run = train(
            load_dataset("fair-taxi"),
            [bsr(alpha) for alpha in OBJECTIVES.values()],
            beta=BETA,
            seed=SEEDS,
            config=config,
            out=folder,
            progress=progress,
        )
        found = summarise(run, taxi, space_of(taxi), EPISODES)
        kept = ("params", "score", "twin_score", "diagnostics")
        members = [{key: row[key] for key in kept} for row in found["members"]]
        optima = [summary["exact_score"] for summary in found["by_objective"]]
        return {"members": members, "optima": optima, "seconds": run.seconds}

    facts = {"config": asdict(config), "beta": BETA, "seeds": SEEDS, "episodes": EPISODES}
    return Part(_slug(name), facts, work)


def _summary(row: dict[str, Any], results: dict[str, Any]) -> dict[str, Any]:
    """Per objective: shares of the gap by seed, the dual's excess and the largest violations."""
    summary = {}
    for i, name in enumerate(OBJECTIVES):
        members = row["members"][i * len(SEEDS) : (i + 1) * len(SEEDS)]
        diagnostics = [member["diagnostics"] for member in members]
        summary[name] = {
            "gap_share": [gap_share(m["score"], m["twin_score"], row["optima"][i]) for m in members],
            "dual_excess": [d["dual_value"] - results["exact"][name] for d in diagnostics],
            "mass_violation": max(d["mass_violation"] for d in diagnostics),
            "flow_violation": float(np.mean([d["flow_violation"] for d in diagnostics])),
        }
    return summary


def _table(rows: dict[str, Any], results: dict[str, Any]) -> Any:
    heads = [f"{name}: {what}" for name in OBJECTIVES for what in ("gap closed", "dual - exact")]
    table = columns(
        "Fair-Taxi, one change at a time (mean ± s.d. over 3 seeds)", "variant", *heads, "mass off by"
    )
    for name, row in rows.items():
        summary = _summary(row, results)
        cells = []
        for found in summary.values():
            shares = np.array(found["gap_share"])
            cells += [
                f"{shares.mean():.1%} ± {shares.std(ddof=1):.1%}",
                f"{np.mean(found['dual_excess']):+.3f}",
            ]
        worst = max(found["mass_violation"] for found in summary.values())
        table.add_row(name, *cells, f"{worst:.3f}")
    return table


if __name__ == "__main__":
    main()
