"""Steps per second of every body: `python benchmarks/mujoco_steps.py [--seconds 5] [--episodes 64]`.

Random actions, whole episodes; a new batch starts when half of the episodes have ended. Both columns are
measured in the same run: the batched stepper on all threads, and one Gymnasium environment.
"""

import argparse
import os
import platform
import time
from collections.abc import Callable

import gymnasium
import mujoco
import numpy as np

import aetdice  # noqa: F401  registers the ids
from aetdice.envs.mujoco import BODIES, BatchedBody


def batched(name: str, episodes: int, threads: int | None) -> Callable[[], int]:
    """A function that makes one step of a batch and returns how many episodes were simulated."""
    batch = BatchedBody(name, threads=threads)
    limits = np.array(batch.body.action_limits)
    rng = np.random.default_rng(0)

    running, clock = 0, 0

    def play() -> int:
        nonlocal running, clock
        if 2 * running < episodes or clock == batch.horizon:
            batch.reset(episodes, int(rng.integers(2**31)))
            running, clock = episodes, 0
        simulated = running
        _, _, ended = batch.step(rng.uniform(-1, 1, (episodes, len(limits))) * limits)
        running, clock = episodes - int(ended.sum()), clock + 1
        return simulated

    return play


def single(name: str) -> Callable[[], int]:
    """The same for one Gymnasium environment."""
    env = gymnasium.make(f"d4morl-{name}-v0")
    env.action_space.seed(0)

    def play() -> int:
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()
        return 1

    env.reset(seed=0)
    return play


def speed(play: Callable[[], int], seconds: float) -> float:
    play()
    start, steps = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        steps += play()
    return steps / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--episodes", type=int, default=64)
    parser.add_argument("--threads", type=int, default=None)
    arguments = parser.parse_args()
    print(
        f"MuJoCo {mujoco.__version__}, Python {platform.python_version()}, {os.cpu_count()} cores, "
        f"{arguments.episodes} episodes at once\n"
    )
    print(f"{'body':<14}{'batched':>12}{'one env':>12}{'ratio':>8}")
    for name in BODIES:
        together = speed(batched(name, arguments.episodes, arguments.threads), arguments.seconds)
        alone = speed(single(name), arguments.seconds)
        print(f"{name:<14}{together:>12,.0f}{alone:>12,.0f}{together / alone:>8.1f}")


if __name__ == "__main__":
    main()
