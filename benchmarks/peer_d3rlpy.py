"""d3rlpy's IQL on random data, for benchmarks/speed.py; needs d3rlpy and nothing of ours."""

import argparse
import json
import time

import d3rlpy
import numpy as np

EPISODES, HORIZON, OBSERVATIONS, ACTIONS = 100, 300, 54, 2
"""As many observations as our encoder has features on PointMaze; IQL there has continuous actions only."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hidden", type=int, nargs="+", required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--steps", type=int, default=300)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    count = EPISODES * HORIZON
    dataset = d3rlpy.dataset.MDPDataset(
        rng.normal(size=(count, OBSERVATIONS)).astype(np.float32),
        rng.uniform(-1, 1, (count, ACTIONS)).astype(np.float32),
        rng.normal(size=count).astype(np.float32),
        (np.arange(count) % HORIZON == HORIZON - 1).astype(np.float32),
    )
    encoder = d3rlpy.models.VectorEncoderFactory(hidden_units=arguments.hidden)
    config = d3rlpy.algos.IQLConfig(
        batch_size=arguments.batch,
        actor_encoder_factory=encoder,
        critic_encoder_factory=encoder,
        value_encoder_factory=encoder,
    )
    algorithm = config.create(device="cpu:0")
    algorithm.build_with_dataset(dataset)
    times = []
    for _ in range(6):
        started = time.perf_counter()
        for _ in range(arguments.steps // 3):
            algorithm.update(dataset.sample_transition_batch(arguments.batch))
        times.append((time.perf_counter() - started) / (arguments.steps // 3))
    rates = 1 / np.array(times[1:])
    print(json.dumps({"policy_steps": rates.max(), "policy_steps_median": float(np.median(rates))}))


if __name__ == "__main__":
    main()
