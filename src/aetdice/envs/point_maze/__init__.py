"""MO-PointMaze, its heuristics and its dataset."""

from aetdice.envs.point_maze.collection import collect_point_maze
from aetdice.envs.point_maze.heuristics import sample_schedule_returns, schedule_returns
from aetdice.envs.point_maze.maze import PointMaze, point_maze_2obj, point_maze_3obj

__all__ = [
    "PointMaze",
    "collect_point_maze",
    "point_maze_2obj",
    "point_maze_3obj",
    "sample_schedule_returns",
    "schedule_returns",
]
