"""The best schedules of a maze whose actions slip: a schedule is worth what its sampled episodes are."""

from collections.abc import Mapping
from itertools import pairwise

import equinox as eqx
import numpy as np
from jaxtyping import Float, Int

from aetdice.envs import PointMaze
from aetdice.envs.point_maze import sample_schedule_returns
from aetdice.envs.point_maze.schedules import nearby_schedules, orders, schedule_grid
from aetdice.exact.mixtures import mix_utilities
from aetdice.objectives import Objective, in_float64

LEGS = 3
STEPS = (30, 10, 3)
"""Between switch times: of the first grid, then around the best schedules found."""
EPISODES = 64
"""Of every schedule, by which the best are chosen."""
FINAL = 1024
"""Of the chosen ones, by which they are valued."""
TOGETHER = 4096
"""Episodes that are driven at once."""

Schedule = tuple[Int[np.ndarray, "n legs"], Int[np.ndarray, "n switches"]]


def best_schedules(
    maze: PointMaze,
    objectives: Mapping[str, Objective],
    targets: Int[np.ndarray, "n legs"] | None = None,
    *,
    steps: tuple[int, ...] = STEPS,
    episodes: int = EPISODES,
    final: int = FINAL,
    seed: int = 0,
) -> dict[str, float]:
    """J of the best mixture of schedules for each objective: max_p G(Σ p_i E[F(R) | schedule i]).

    Schedules are chosen on a grid of switch times and refined near the best. The value of the chosen
    mixture comes from new episodes, so that it is not raised by the luck of those that chose it.
    """
    targets = orders(len(maze.objectives), LEGS) if targets is None else targets
    known = schedule_grid(targets, steps[0], maze.horizon)
    worth = _utilities(maze, objectives, known, episodes, seed)
    for step, finer in pairwise(steps):
        best = [mix_utilities(goal.aggregation, worth[name]) for name, goal in objectives.items()]
        used = np.unique([row for mixture in best for row in (*mixture.rows, *mixture.promising)])
        near = nearby_schedules(known[0][used], known[1][used], step, finer, maze.horizon)
        more = _utilities(maze, objectives, near, episodes, seed)
        known = (np.concatenate([known[0], near[0]]), np.concatenate([known[1], near[1]]))
        worth = {name: np.concatenate([worth[name], more[name]]) for name in objectives}
    values = {}
    for name, goal in objectives.items():
        mixture = mix_utilities(goal.aggregation, worth[name])
        chosen = (known[0][mixture.rows], known[1][mixture.rows])
        fresh = _utilities(maze, {name: goal}, chosen, final, seed + 1)[name]
        values[name] = float(in_float64(goal.aggregation)(mixture.probabilities @ fresh))
    return values


def _utilities(
    maze: PointMaze, objectives: Mapping[str, Objective], schedules: Schedule, episodes: int, seed: int
) -> dict[str, Float[np.ndarray, "n k"]]:
    """E[F(R)] of every schedule, per objective; all schedules have the same episodes' luck."""
    targets, times = schedules
    # One size, so that there is one program to compile.
    size = max(1, TOGETHER // episodes)
    rows = (np.arange(-(-len(targets) // size) * size) % len(targets)).reshape(-1, size)
    parts = [sample_schedule_returns(maze, targets[part], times[part], episodes, seed) for part in rows]
    returns = np.concatenate(parts)[: len(targets)]

    def mean(objective: Objective) -> Float[np.ndarray, "n k"]:
        flat = in_float64(eqx.filter_vmap(objective.utility))(returns.reshape(-1, returns.shape[2]))
        return np.asarray(flat).reshape(len(targets), episodes, -1).mean(axis=1)

    return {name: mean(objective) for name, objective in objectives.items()}
