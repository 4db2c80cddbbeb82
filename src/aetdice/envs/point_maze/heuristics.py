"""Shortest-path heuristics: a ball that heads for one target after another with the maze's actions."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

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
    if maze.slip:
        raise InputError(
            "with slip a schedule has no one return; sample_schedule_returns gives those of several episodes"
        )
    return sample_schedule_returns(maze, targets, switch_times, 1)[:, 0]


def sample_schedule_returns(
    maze: PointMaze,
    targets: Int[np.ndarray, "n legs"],
    switch_times: Int[np.ndarray, "n switches"],
    episodes: int,
    seed: int = 0,
) -> Float[np.ndarray, "n episodes m"]:
    """R of several episodes of every schedule, which differ by what slips: all schedules share their keys."""
    n, legs = targets.shape
    if episodes < 1:
        raise InputError(f"at least one episode is needed, not {episodes}")
    if switch_times.shape != (n, legs - 1):
        raise InputError(
            f"{n} schedules of {legs} legs need switch times of shape {(n, legs - 1)}, "
            f"not {switch_times.shape}"
        )
    if np.min(targets) < 0 or np.max(targets) > len(maze.objectives):
        raise InputError(f"targets are numbered 0 to {len(maze.objectives)}, the last being the start")
    keys = jax.random.split(jax.random.key(seed), episodes)
    return in_float64(_schedule_returns)(maze, targets, switch_times, waypoints(maze), keys)


def _schedule_returns(
    maze: PointMaze,
    targets: Int[Array, "n legs"],
    switch_times: Int[Array, "n switches"],
    table: Float[Array, "targets rows columns 2"],
    keys: Key[Array, " episodes"],
) -> Float[Array, "n episodes m"]:
    state = jnp.concatenate([jnp.asarray(maze.start), jnp.zeros(2)])
    strongest, as_planned = jnp.asarray(max(maze.magnitudes)), jnp.full(maze.horizon, -1)

    def returns(
        targets: Int[Array, " legs"], switch_times: Int[Array, " switches"], key: PRNGKeyArray
    ) -> Float[Array, " m"]:
        itinerary = Itinerary(targets, switch_times, jnp.asarray(CRUISE), strongest)
        return jnp.sum(drive(maze, table, state, itinerary, as_planned, key).rewards, axis=0)

    return jax.vmap(jax.vmap(returns, (None, None, 0)), (0, 0, None))(targets, switch_times, keys)


def drive(
    maze: PointMaze,
    table: Float[Array, "targets rows columns 2"],
    state: Float[Array, " 4"],
    itinerary: Itinerary,
    random_actions: Int[Array, " steps"],
    key: PRNGKeyArray,
) -> Trajectory:
    """An episode that follows the itinerary, but for the actions in `random_actions` (-1: as planned)."""

    def step(state: Float[Array, " 4"], now: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
        time, random_action, key = now
        target = jnp.asarray(itinerary.targets)[jnp.sum(time >= jnp.asarray(itinerary.switch_times))]
        planned = steer(maze, state, waypoint(table, state, target), itinerary)
        action = jnp.where(random_action < 0, planned, random_action.astype(planned.dtype))
        after, reward, _ = maze.step(key, state, action)
        return after, (after, action, reward)

    steps = (jnp.arange(maze.horizon), random_actions, jax.random.split(key, maze.horizon))
    _, (states, actions, rewards) = jax.lax.scan(step, state, steps)
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
    cells = [cell_of(maze.rows, mark) for mark in (*goals_of(maze.rows), START)]
    return np.nan_to_num(np.stack([waypoints_to(maze, cell, maze.walls) for cell in cells]))


def waypoints_to(
    maze: PointMaze, target: Cell, walls: Bool[np.ndarray, "rows columns"]
) -> Float[np.ndarray, "rows columns 2"]:
    """The same for one target, among any walls; NaN in cells from which no path leads there."""
    table, steps = np.full((*walls.shape, 2), np.nan), steps_from(walls, target)
    for row, column in np.argwhere(steps >= 0).tolist():
        table[row, column] = maze.middle(_end_of_run(steps, (row, column)))
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
