"""Speed of MO-PointMaze on this machine's CPU, beside Gymnasium-Robotics' MuJoCo environment.

python benchmarks/point_maze.py
"""

import os
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium_robotics.envs.maze.point_maze import PointMazeEnv
from rich.console import Console
from rich.table import Table

from aetdice.envs import PointMaze, point_maze_2obj
from aetdice.envs.point_maze.collection import EPISODES, collect_point_maze

BATCH = 1000
REPEATS = 5


def seconds(function: Callable[[], object]) -> float:
    """The least of several times: the machine's own speed, not its other tenants'."""
    times = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        function()
        times.append(time.perf_counter() - begun)
    return min(times)


def jax_rate(maze: PointMaze) -> float:
    """Environment steps per second of random episodes, compiled and batched."""

    def episode(key: jax.Array) -> jax.Array:
        def advance(state: jax.Array, action: jax.Array) -> tuple[jax.Array, jax.Array]:
            state, reward, _ = maze.step(key, state, action)
            return state, reward

        actions = jax.random.randint(key, (maze.horizon,), 0, maze.actions)
        return jnp.sum(jax.lax.scan(advance, maze.reset(key), actions)[1], axis=0)

    play = jax.jit(jax.vmap(episode))
    keys = jax.random.split(jax.random.key(0), BATCH)
    play(keys).block_until_ready()
    return BATCH * maze.horizon / seconds(lambda: play(keys).block_until_ready())


def mujoco_rate(maze: PointMaze) -> float:
    """Environment steps per second of one MuJoCo environment."""
    env = PointMazeEnv(maze_map=maze.walls.astype(int).tolist())
    os.remove(env.tmp_xml_file_path)
    controls = maze.forces[np.random.default_rng(0).integers(maze.actions, size=maze.horizon)]

    def episode() -> None:
        env.reset(seed=0)
        for control in controls:
            env.step(control)

    rate = maze.horizon / seconds(episode)
    env.close()
    return rate


def main() -> None:
    maze = point_maze_2obj()
    begun = time.perf_counter()
    collect_point_maze(maze)
    collected = time.perf_counter() - begun
    ours, theirs = jax_rate(maze), mujoco_rate(maze)
    table = Table("measure", "value", title=f"MO-PointMaze-2obj, {os.cpu_count()} cores")
    table.columns[1].justify = "right"
    table.add_row(f"JAX, {BATCH} episodes at once", f"{ours:,.0f} steps/s")
    table.add_row("one MuJoCo environment", f"{theirs:,.0f} steps/s")
    table.add_row("ratio", f"{ours / theirs:,.0f}")
    table.add_row(f"{EPISODES:,} episodes of data, compilation included", f"{collected:.1f} s")
    Console().print(table)


if __name__ == "__main__":
    main()
