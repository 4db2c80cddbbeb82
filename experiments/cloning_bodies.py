"""Cloning a body's behaviours: what features, width and length do to held-out likelihood, and to J.

    python experiments/cloning_bodies.py --out RESULT.json [--body walker2d --quality expert]

Behaviour cloning alone, on 1,000 episodes with data seed 5 and training seed 10; J is that of the studies
of these bodies. By these figures the recipe for observations of many numbers was settled.
"""

import argparse
import datetime
import json
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

from aetdice.algorithms.cloning import cloning
from aetdice.config import TrainingConfig
from aetdice.data.transforms import MinMax, transform_episodes
from aetdice.datasets import load_dataset, make_env
from aetdice.evaluation import sample_returns
from aetdice.files import versions, write_json
from aetdice.learning.recipe import Trial
from aetdice.learning.training import train
from aetdice.objectives import in_float64
from aetdice.studies.mujoco import CONCAVE, REFERENCE
from aetdice.studies.parts import code_commit

SETTINGS = [
    {"network.observation_fourier": sines, "network.hidden": hidden, "extraction.steps": steps}
    for sines, hidden, steps in (
        (3, (128, 128), 12_000),
        (0, (128, 128), 12_000),
        (0, (256, 256), 12_000),
        (3, (256, 256), 24_000),
        (0, (256, 256), 24_000),
        (0, (256, 256), 48_000),
    )
]
SEED, EVALUATION_SEED = 10, 2026


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--body", default="walker2d")
    parser.add_argument("--quality", default="expert")
    parser.add_argument("--episodes", type=int, default=1_000, help="of the data")
    parser.add_argument("--rollouts", type=int, default=100)
    arguments = parser.parse_args()
    dataset = load_dataset(arguments.body, quality=arguments.quality, episodes=arguments.episodes, seed=5)
    transform = MinMax.fit(dataset.select(np.arange(min(REFERENCE, len(dataset)))), (1.0, 1.0))
    horizon, env, score = int(dataset.lengths.max()), make_env(arguments.body), in_float64(CONCAVE)
    trial = Trial.of(transform_episodes(dataset, transform), cloning(horizon, TrainingConfig()), horizon)
    assert trial is not None
    rows: list[dict[str, Any]] = []
    for setting in SETTINGS:
        began = time.perf_counter()
        given = {"network.fourier": 3, **setting, "trainer.holdout": 0.0, "trainer.report": 0.0}
        config = TrainingConfig().adapted(given)
        run = train(
            dataset, CONCAVE, algorithm="bc", seed=SEED, transform=transform, config=config, progress=False
        )
        returns = sample_returns(run.policy, env, arguments.rollouts, EVALUATION_SEED)
        rows.append(
            {
                **setting,
                "likelihood": trial.fit(config, config.extraction.steps),
                "score": float(score(returns)),
                "data": float(score(run.data_returns)),
                "seconds": time.perf_counter() - began,
            }
        )
        print(json.dumps(rows[-1]), flush=True)
        facts = {
            "body": arguments.body,
            "quality": arguments.quality,
            "commit": code_commit(),
            "date": datetime.date.today().isoformat(),
            "device": jax.devices()[0].device_kind,
            "versions": versions(),
        }
        write_json(arguments.out, {"rows": rows, **facts})


if __name__ == "__main__":
    main()
