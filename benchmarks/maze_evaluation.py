"""Seconds that 500 sampled episodes of MO-PointMaze take, with a policy as large as the paper's.

python benchmarks/maze_evaluation.py [OUT.json]
"""

import sys
import time
from pathlib import Path

import jax

from aetdice.config import NetworkConfig, TrainingConfig
from aetdice.envs import point_maze_2obj
from aetdice.envs.point_maze.collection import collect_point_maze
from aetdice.evaluation import Policy, sample_returns
from aetdice.files import versions, write_json
from aetdice.learning.inputs import encoder_for, head_for
from aetdice.learning.setup import algorithm_for
from aetdice.networks import PolicyNetwork
from aetdice.studies.parts import code_commit

HIDDEN = (768, 768, 768)
EPISODES = 500
REPEATS = 3


def main() -> None:
    maze = point_maze_2obj()
    network = NetworkConfig(observation_fourier=3, fourier=3)
    dataset = collect_point_maze(maze, 20)
    cloning = algorithm_for("bc", maze.horizon, TrainingConfig())
    encoder, head = encoder_for(dataset, maze.horizon, cloning, network), head_for(dataset, network)
    policy = Policy(PolicyNetwork(encoder, head, HIDDEN, jax.random.key(0)))
    seconds = []
    for seed in range(1 + REPEATS):
        begun = time.perf_counter()
        sample_returns(policy, maze, EPISODES, seed)
        seconds.append(time.perf_counter() - begun)
    found = {
        "hidden": HIDDEN,
        "episodes": EPISODES,
        "horizon": maze.horizon,
        "first_seconds": seconds[0],
        "later_seconds": seconds[1:],
        "device": jax.devices()[0].device_kind,
        "versions": versions(),
    }
    print(f"first, compilation included: {seconds[0]:.2f} s; then at best {min(seconds[1:]):.2f} s")
    if len(sys.argv) > 1:
        write_json(Path(sys.argv[1]), {**found, "commit": code_commit()})


if __name__ == "__main__":
    main()
