"""Maze episodes in shifts: each driver works for a while at one goal and stays clear of the others."""

import numpy as np
from jaxtyping import Float

from aetdice.envs.point_maze.contacts import STEP
from aetdice.envs.point_maze.heuristics import CRUISE, Itinerary, waypoints_to
from aetdice.envs.point_maze.layout import START, Cell, cell_of, goals_of, steps_from
from aetdice.envs.point_maze.maze import PointMaze
from aetdice.envs.point_maze.plans import Plan, draw_random_actions

SHIFT = 0.2
"""Share of the episode that a driver spends at the goal."""
EXPLORATION = (0.0, 0.05, 0.1)
"""Probability of a random action; each episode keeps one of them."""
CLEAR = 2
"""Cells between a place to wait and the goals of others, at least."""
STEPS_PER_CELL = 1 / (CRUISE * STEP)


def shifts(maze: PointMaze, episodes: int, rng: np.random.Generator) -> Plan:
    """Each driver waits at a random place, works one shift at one goal and waits at another place.

    No way leads through another goal, so an episode earns from one goal only, and for a fifth of the
    time. Shifts begin at random times: drivers who come and drivers who go meet on their ways.
    """
    places = [quiet_cells(maze, goal) for goal in goals_of(maze.rows)]
    counts = np.array([len(cells) for cells in places])
    goal = rng.integers(len(places), size=episodes)
    own = np.cumsum(1 + counts)[goal] - 1 - counts[goal]
    before, after = (own + 1 + rng.integers(counts[goal]) for _ in range(2))
    crews = list(zip(goals_of(maze.rows), places, strict=True))
    out, on = np.concatenate([travel(maze, *crew) for crew in crews])[before].T
    work = SHIFT * maze.horizon
    begin = out + rng.random(episodes) * np.maximum(maze.horizon - out - on - work, 0)
    itineraries = Itinerary(
        targets=np.column_stack([before, own, after]),
        switch_times=np.round(np.column_stack([begin, begin + on + work])).astype(int),
        speed=np.full(episodes, CRUISE),
        strongest=np.full(episodes, max(maze.magnitudes)),
    )
    table = np.concatenate([ways(maze, *crew) for crew in crews])
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


def travel(maze: PointMaze, goal: str, cells: list[Cell]) -> Float[np.ndarray, "targets 2"]:
    """Steps of time from the start to a goal and to its drivers' places, and on from there to the goal."""
    targets = [cell_of(maze.rows, goal), *cells]
    closed = _closed(maze, goal)
    apart = [steps_from(closed, cell_of(maze.rows, mark)) for mark in (START, goal)]
    return STEPS_PER_CELL * np.array([[cells[target] for cells in apart] for target in targets])


def _closed(maze: PointMaze, goal: str) -> np.ndarray:
    """The walls, with the other goals' cells walled up."""
    walls = maze.walls.copy()
    for other in goals_of(maze.rows).replace(goal, ""):
        walls[cell_of(maze.rows, other)] = True
    return walls
