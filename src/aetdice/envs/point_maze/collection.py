"""The PointMaze datasets, driven by the shortest-path heuristics; `mixed` tours the goals."""

from collections.abc import Callable

import jax
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from aetdice.data import Episodes
from aetdice.envs.point_maze.heuristics import CRUISE, Itinerary, Trajectory, drive, waypoints
from aetdice.envs.point_maze.maze import PointMaze
from aetdice.envs.point_maze.plans import Plan, draw_random_actions
from aetdice.envs.point_maze.shifts import shifts
from aetdice.errors import InputError
from aetdice.objectives import in_float64

EPISODES = 1500
TOURS = 0.5
"""Share of the episodes that visit every goal once; the others have 1 to m + 1 legs to any goals."""
BALANCE = 3.0
"""Concentration of the Dirichlet law of the legs' lengths: 1 would make switch times uniform."""
BACK_TO_START = 0.05
"""Probability that a leg heads for the start instead of a goal."""
BRISK = 0.6
"""Share of the episodes at full speed and strength; the others draw both."""
SLOWEST = 0.3
"""The least share of full speed."""
EXPLORATION = (0.0, 0.0, 0.05, 0.1, 0.3)
"""Probability of a random action; each episode keeps one of them."""


def mixed(maze: PointMaze, episodes: int, rng: np.random.Generator) -> Plan:
    """Episodes head for one random goal after another, at random speeds and with random actions."""
    itineraries = draw_itineraries(maze, episodes, rng)
    return Plan(waypoints(maze), itineraries, draw_random_actions(maze, EXPLORATION, episodes, rng))


QUALITIES: dict[str, Callable[[PointMaze, int, np.random.Generator], Plan]] = {
    "mixed": mixed,
    "shifts": shifts,
}
"""By the dataset's quality, what plans its episodes."""


def collect_point_maze(
    maze: PointMaze, episodes: int = EPISODES, seed: int = 0, quality: str = "mixed"
) -> Episodes:
    """Episodes of a quality's plan; equal seeds give equal datasets."""
    if episodes < 1:
        raise InputError(f"at least one episode is needed, not {episodes}")
    if quality not in QUALITIES:
        raise InputError(f"unknown quality {quality!r}; known: {', '.join(QUALITIES)}")
    rng = np.random.default_rng(seed)
    key = jax.random.key(int(rng.integers(2**31)))
    trajectories = in_float64(_drive_all)(maze, *QUALITIES[quality](maze, episodes, rng), key)
    return Episodes(
        observations=trajectories.states.reshape(-1, 4).astype(np.float32),
        actions=trajectories.actions.ravel(),
        rewards=trajectories.rewards.reshape(-1, len(maze.objectives)),
        lengths=np.full(episodes, maze.horizon),
        terminated=np.zeros(episodes, dtype=bool),
        truncated=np.ones(episodes, dtype=bool),
        objectives=maze.objectives,
    )


def draw_itineraries(maze: PointMaze, episodes: int, rng: np.random.Generator) -> Itinerary:
    """Random targets, times to leave them, speeds and strengths."""
    goals = len(maze.objectives)
    tours, brisk = rng.random(episodes) < TOURS, rng.random(episodes) < BRISK
    once = np.column_stack(
        [rng.permuted(np.tile(np.arange(goals), (episodes, 1)), axis=1), np.zeros(episodes, int)]
    )
    targets = np.where(tours[:, None], once, rng.integers(goals, size=once.shape))
    targets = np.where(rng.random(targets.shape) < BACK_TO_START, goals, targets)

    legs = np.where(tours, goals, rng.integers(1, goals + 2, size=episodes))
    spans = rng.gamma(BALANCE, size=targets.shape) * (np.arange(goals + 1) < legs[:, None])
    ends = np.cumsum(spans, axis=1) / np.sum(spans, axis=1, keepdims=True)
    return Itinerary(
        targets=targets,
        switch_times=np.round(maze.horizon * ends[:, :-1]).astype(int),
        speed=CRUISE * np.where(brisk, 1, rng.uniform(SLOWEST, 1, episodes)),
        strongest=np.where(brisk, max(maze.magnitudes), rng.choice(maze.magnitudes, episodes)),
    )


def _drive_all(
    maze: PointMaze,
    table: Float[Array, "targets rows columns 2"],
    itineraries: Itinerary,
    random_actions: Int[Array, "n steps"],
    key: PRNGKeyArray,
) -> Trajectory:
    def episode(key: PRNGKeyArray, itinerary: Itinerary, random_actions: Int[Array, " steps"]) -> Trajectory:
        chance = jax.random.fold_in(key, 1)
        return drive(maze, table, maze.reset(key), itinerary, random_actions, chance)

    return jax.vmap(episode)(jax.random.split(key, len(random_actions)), itineraries, random_actions)
