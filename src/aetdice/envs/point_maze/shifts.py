"""Maze episodes in shifts: each driver heads for one goal in one half and stays clear of the others."""

import numpy as np
from jaxtyping import Float

from aetdice.envs.point_maze.heuristics import CRUISE, Itinerary, waypoints_to
from aetdice.envs.point_maze.layout import START, Cell, cell_of, goals_of, steps_from
from aetdice.envs.point_maze.maze import PointMaze
from aetdice.envs.point_maze.plans import Plan, draw_random_actions

HAND_OVER = 0.25
"""Share of the episode by which a first shift may end early, or a second one begin late."""
EXPLORATION = (0.0, 0.05, 0.1)
"""Probability of a random action; each episode keeps one of them."""
CLEAR = 2
"""Cells between a place to wait and the goals of others, at least."""


def shifts(maze: PointMaze, episodes: int, rng: np.random.Generator) -> Plan:
    """Each driver parks at one goal in one half of the episode, and at a random place in the other.

    Neither way leads through another goal, so an episode earns much from one goal only. Shifts
    end and begin at random times: drivers who come and drivers who go meet on their ways.
    """
    places = [quiet_cells(maze, goal) for goal in goals_of(maze.rows)]
    counts = np.array([len(cells) for cells in places])
    goal, second = rng.integers(len(places), size=episodes), rng.random(episodes) < 0.5
    own = np.cumsum(1 + counts)[goal] - 1 - counts[goal]
    place = own + 1 + rng.integers(counts[goal])
    early = rng.uniform(0, HAND_OVER, episodes)
    change = maze.horizon * (0.5 + np.where(second, early, -early))
    itineraries = Itinerary(
        targets=np.column_stack([np.where(second, place, own), np.where(second, own, place)]),
        switch_times=np.round(change).astype(int)[:, None],
        speed=np.full(episodes, CRUISE),
        strongest=np.full(episodes, max(maze.magnitudes)),
    )
    table = np.concatenate(
        [ways(maze, goal, cells) for goal, cells in zip(goals_of(maze.rows), places, strict=True)]
    )
    return Plan(table, itineraries, draw_random_actions(maze, EXPLORATION, episodes, rng))


def quiet_cells(maze: PointMaze, goal: str) -> list[Cell]:
    """Where a goal's drivers wait: no goal, and clear of all others; the start, if there is no such cell."""
    reach = steps_from(_closed(maze, goal), cell_of(maze.rows, START))
    quiet = reach >= 0
    for mark in goals_of(maze.rows):
        apart = steps_from(maze.walls, cell_of(maze.rows, mark))
        quiet &= apart >= (1 if mark == goal else CLEAR)
    return [(row, column) for row, column in np.argwhere(quiet).tolist()] or [cell_of(maze.rows, START)]


def ways(maze: PointMaze, goal: str, cells: list[Cell]) -> Float[np.ndarray, "targets rows columns 2"]:
    """Waypoints to a goal and to its drivers' places, around the other goals where that can be."""
    targets = [cell_of(maze.rows, goal), *cells]
    around = np.stack([waypoints_to(maze, cell, _closed(maze, goal)) for cell in targets])
    through = np.stack([waypoints_to(maze, cell, maze.walls) for cell in targets])
    return np.nan_to_num(np.where(np.isnan(around), through, around))


def _closed(maze: PointMaze, goal: str) -> np.ndarray:
    """The walls, with the other goals' cells walled up."""
    walls = maze.walls.copy()
    for other in goals_of(maze.rows).replace(goal, ""):
        walls[cell_of(maze.rows, other)] = True
    return walls
