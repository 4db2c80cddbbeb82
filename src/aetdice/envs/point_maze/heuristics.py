"""Shortest-path heuristics: a ball that heads for one target after another with the maze's actions."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from aetdice.envs.point_maze.contacts import MASS, STEP
from aetdice.envs.point_maze.layout import START, Cell, cell_of, goals_of, neighbours, steps_from
from aetdice.envs.point_maze.maze import GEAR, PointMaze
from aetdice.errors import InputError
from aetdice.objectives import in_float64

CRUISE = 3.5
"""Full speed, in m/s: parked at the goals, the returns are then those that the paper's table implies."""
EAGERNESS = 5.0
"""Wanted speed per metre still to go, in 1/s: how the ball slows down as it arrives."""


class Itinerary(NamedTuple):
    """Heads for targets[0] until step switch_times[0], then for targets[1], and so on.

    Targets are numbered as the goals are; one past the last goal is the start.
    """

    targets: Int[Array | np.ndarray, "*n legs"]
    switch_times: Int[Array | np.ndarray, "*n switches"]
    speed: Float[Array | np.ndarray, "*n"]
    strongest: Float[Array | np.ndarray, "*n"]
    """The largest magnitude it may use."""


class Trajectory(NamedTuple):
    """The states seen, the last one included, the actions taken and the rewards received."""

    states: Float[Array, "frames 4"]
    actions: Int[Array, " steps"]
    rewards: Float[Array, "steps m"]


def schedule_returns(
    maze: PointMaze, targets: Int[np.ndarray, "n legs"], switch_times: Int[np.ndarray, "n switches"]
) -> Float[np.ndarray, "n m"]:
    """R of many schedules, at full speed and without noise, from the middle of the start cell.

    A leg whose switch times coincide is left out, so long schedules contain the short ones.
    """
    n, legs = targets.shape
    if switch_times.shape != (n, legs - 1):
        raise InputError(
            f"{n} schedules of {legs} legs need switch times of shape {(n, legs - 1)}, "
            f"not {switch_times.shape}"
        )
    if np.min(targets) < 0 or np.max(targets) > len(maze.objectives):
        raise InputError(f"targets are numbered 0 to {len(maze.objectives)}, the last being the start")
    return in_float64(_schedule_returns)(maze, targets, switch_times, waypoints(maze))


def _schedule_returns(
    maze: PointMaze,
    targets: Int[Array, "n legs"],
    switch_times: Int[Array, "n switches"],
    table: Float[Array, "targets rows columns 2"],
) -> Float[Array, "n m"]:
    state = jnp.concatenate([jnp.asarray(maze.start), jnp.zeros(2)])
    strongest, as_planned = jnp.asarray(max(maze.magnitudes)), jnp.full(maze.horizon, -1)

    def returns(targets: Int[Array, " legs"], switch_times: Int[Array, " switches"]) -> Float[Array, " m"]:
        itinerary = Itinerary(targets, switch_times, jnp.asarray(CRUISE), strongest)
        return jnp.sum(drive(maze, table, state, itinerary, as_planned).rewards, axis=0)

    return jax.vmap(returns)(targets, switch_times)


def drive(
    maze: PointMaze,
    table: Float[Array, "targets rows columns 2"],
    state: Float[Array, " 4"],
    itinerary: Itinerary,
    random_actions: Int[Array, " steps"],
) -> Trajectory:
    """An episode that follows the itinerary, but for the actions in `random_actions` (-1: as planned)."""

    def step(state: Float[Array, " 4"], now: tuple[Array, Array]) -> tuple[Array, tuple[Array, ...]]:
        time, random_action = now
        target = jnp.asarray(itinerary.targets)[jnp.sum(time >= jnp.asarray(itinerary.switch_times))]
        planned = steer(maze, state, waypoint(table, state, target), itinerary)
        action = jnp.where(random_action < 0, planned, random_action.astype(planned.dtype))
        after, reward, _ = maze.step(jax.random.key(0), state, action)
        return after, (after, action, reward)

    _, (states, actions, rewards) = jax.lax.scan(step, state, (jnp.arange(maze.horizon), random_actions))
    return Trajectory(jnp.concatenate([state[None], states]), actions, rewards)


def steer(
    maze: PointMaze,
    state: Float[Array, " 4"],
    towards: Float[Array, " 2"],
    itinerary: Itinerary,
) -> Int[Array, ""]:
    """The action that best mends what is lacking of the wanted velocity, clip(k (w - s), ±speed).

    An action pushes along one axis only: the one where more is lacking.
    """
    lacking = jnp.clip(EAGERNESS * (towards - state[:2]), -itinerary.speed, itinerary.speed) - state[2:]
    east, north = lacking
    direction = jnp.where(
        jnp.abs(north) > jnp.abs(east), jnp.where(north > 0, 0, 1), jnp.where(east > 0, 2, 3)
    )
    wanted = jnp.max(jnp.abs(lacking)) * MASS / (STEP * GEAR)
    magnitudes = jnp.asarray(maze.magnitudes, state.dtype)
    off = jnp.where(magnitudes > itinerary.strongest, jnp.inf, jnp.abs(magnitudes - wanted))
    return direction * len(maze.magnitudes) + jnp.argmin(off).astype(direction.dtype)


def waypoint(
    table: Float[Array, "targets rows columns 2"], state: Float[Array, " 4"], target: Int[Array, ""]
) -> Float[Array, " 2"]:
    """Where to go next from a state's cell."""
    _, rows, columns, _ = table.shape
    row, column = jnp.floor(rows / 2 - state[1]), jnp.floor(columns / 2 + state[0])
    return table[target, row.astype(jnp.int32), column.astype(jnp.int32)].astype(state.dtype)


def waypoints(maze: PointMaze) -> Float[np.ndarray, "targets rows columns 2"]:
    """For every target and cell, the end of the straight run that begins a shortest path."""
    marks = (*goals_of(maze.rows), START)
    table = np.zeros((len(marks), *maze.walls.shape, 2))
    for target, mark in enumerate(marks):
        steps = steps_from(maze.walls, cell_of(maze.rows, mark))
        for row, column in np.argwhere(steps >= 0).tolist():
            table[target, row, column] = maze.middle(_end_of_run(steps, (row, column)))
    return table


def _end_of_run(steps: Int[np.ndarray, "rows columns"], cell: Cell) -> Cell:
    """The last cell of the straight way along which every cell is one step nearer."""
    nearer = [there for there in neighbours(cell) if steps[there] == steps[cell] - 1 >= 0]
    if not nearer:
        return cell
    down, right = nearer[0][0] - cell[0], nearer[0][1] - cell[1]
    while steps[there := (cell[0] + down, cell[1] + right)] == steps[cell] - 1 >= 0:
        cell = there
    return cell
