"""Episode-weighted cloning on Fair-Taxi and the mazes: what whole recorded episodes are worth.

    python experiments/episode_weights.py fair-taxi --out RESULT.json

Trains every sample size for ESR, BSR(0.5) and SER as one population and takes the size that its rule
selects without the environment. Networks and lengths of training are those of the maze studies, which
were settled by looking at the mazes; made for a GPU.
"""

import argparse
import datetime
from pathlib import Path
from typing import Any

import jax
import numpy as np

from aetdice.config import TrainingConfig
from aetdice.datasets import load_dataset, make_env, space_of
from aetdice.evaluation import make_objective
from aetdice.exact import solve
from aetdice.exact.mixtures import best_mixture
from aetdice.files import versions, write_json
from aetdice.learning.run import gap_share, summarise
from aetdice.learning.training import train
from aetdice.studies.parts import code_commit

OBJECTIVES = {"ESR": 0.0, "BSR 0.5": 0.5, "SER": 1.0}
SIZES = (0.1, 0.03, 0.01, 0.005)
MAZE_FEATURES = {"network.observation_fourier": 3, "network.fourier": 3}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("env", choices=["fair-taxi", "pointmaze-2obj", "pointmaze-3obj"])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data-seed", type=int, default=0)
    parser.add_argument("--seed", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=24_000)
    parser.add_argument("--episodes", type=int, default=1_000)
    parser.add_argument("--commit", default=code_commit())
    arguments = parser.parse_args()
    env = make_env(arguments.env)
    dataset = load_dataset(arguments.env, seed=arguments.data_seed)
    features = {} if arguments.env == "fair-taxi" else MAZE_FEATURES
    config = TrainingConfig().adapted(
        {
            "network.hidden": (256, 256),
            "extraction.batch": 512,
            "extraction.steps": arguments.steps,
            "extraction.dropout": 0.1,
            "trainer.chunk": min(4_000, arguments.steps),
            **features,
        }
    )
    objectives = [make_objective("bsr", env, alpha=alpha) for alpha in OBJECTIVES.values()]
    run = train(
        dataset,
        objectives,
        algorithm="episode-weighting",
        sample_size=SIZES,
        seed=arguments.seed,
        config=config,
    )
    result = summarise(run, env, episodes=arguments.episodes)
    space, rows = space_of(env), {}
    for name, objective, summary in zip(OBJECTIVES, objectives, result["by_objective"], strict=True):
        recorded = best_mixture(objective, dataset.returns).value
        best = recorded if space is None else solve(space, objective, check=False).value
        rows[name] = _row(summary, result["members"], best, recorded)
        print(name, rows[name]["scores"], rows[name]["gap_shares"], flush=True)
    write_json(
        arguments.out,
        {
            "env": arguments.env,
            "data_seed": arguments.data_seed,
            "seeds": arguments.seed,
            "episodes": arguments.episodes,
            "settings": config.changed(),
            "rows": rows,
            "commit": arguments.commit,
            "date": datetime.date.today().isoformat(),
            "device": jax.devices()[0].device_kind,
            "seconds": run.seconds,
            "versions": versions(),
        },
    )


def _row(
    summary: dict[str, Any], members: list[dict[str, Any]], best: float, recorded: float
) -> dict[str, Any]:
    """The selected sample size seed by seed, and the mean score of every size."""
    own = [row for row in members if row["params"]["objective"] == summary["selected"]["params"]["objective"]]
    by_size = {size: [row for row in own if row["params"]["sample_size"] == size] for size in SIZES}
    chosen = by_size[summary["selected"]["params"]["sample_size"]]
    return {
        "sample_size": summary["selected"]["params"]["sample_size"],
        "effective_episodes": chosen[0]["diagnostics"]["effective_episodes"],
        "claimed": chosen[0]["diagnostics"]["claimed_value"],
        "scores": [row["score"] for row in chosen],
        "twins": [row["twin_score"] for row in chosen],
        "best": best,
        "best_recorded": recorded,
        "gap_shares": [gap_share(row["score"], row["twin_score"], best) for row in chosen],
        "by_size": {
            str(size): float(np.mean([row["score"] for row in rows])) for size, rows in by_size.items()
        },
        "trusted": summary["trusted"],
    }


if __name__ == "__main__":
    main()
