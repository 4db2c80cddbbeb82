"""What the episodes of a dataset have in mind, drawn before they are driven."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from aetdice.envs.point_maze.heuristics import Itinerary
from aetdice.envs.point_maze.maze import PointMaze

PERSISTENCE = (1, 5, 15)
"""Steps for which a random action is kept; each episode keeps one of them."""


class Plan(NamedTuple):
    """Waypoints to the targets, an itinerary per episode, and actions that take its place (-1: none)."""

    waypoints: Float[np.ndarray, "targets rows columns 2"]
    itineraries: Itinerary
    random_actions: Int[np.ndarray, "n steps"]


def draw_random_actions(
    maze: PointMaze, exploration: Sequence[float], episodes: int, rng: np.random.Generator
) -> Int[np.ndarray, "n steps"]:
    """The random actions of every episode, each kept for some steps; -1 where the itinerary is followed."""
    shape = (episodes, maze.horizon)
    probability, persistence = rng.choice(exploration, episodes), rng.choice(PERSISTENCE, episodes)
    random_actions = np.where(
        rng.random(shape) < probability[:, None], rng.integers(maze.actions, size=shape), -1
    )
    begun = np.arange(maze.horizon) // persistence[:, None] * persistence[:, None]
    return np.take_along_axis(random_actions, begun, axis=1)
