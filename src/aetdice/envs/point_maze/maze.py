"""MO-PointMaze: a ball in a maze, drawn to several goals at once."""

import functools
import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from aetdice.envs.environment import Environment
from aetdice.envs.point_maze.contacts import RADIUS, slide
from aetdice.envs.point_maze.layout import START, Cell, cell_of, goals_of, read_map, walls_of
from aetdice.envs.point_maze.picture import draw_maze
from aetdice.errors import InputError

DIRECTIONS = ((0.0, 1.0), (0.0, -1.0), (1.0, 0.0), (-1.0, 0.0))
"""North, south, east, west."""
GEAR = 100.0
SPEED_LIMIT = 5.0
TWO_GOALS = "###### / #..B.# / #.##.# / #.##.# / #S..A# / ######"
THREE_GOALS = "####### / ###A### / ###.### / #B.S.C# / #######"


class PointMaze(Environment):
    """
    ## Description
    A ball rolls through a maze and is rewarded, at every step, for being near each of several
    goals. Walls keep the goals apart, so time spent at one is lost to the others, and each goal
    is an objective. The physics is that of Gymnasium-Robotics' PointMaze (MuJoCo), contacts with
    the walls included.

    ## Observation Space
    Four numbers: the ball's position x, y in metres (cells are 1 m wide, the origin is the middle of
    the map, y points north) and its velocity in metres per second.

    ## Action Space
    Twelve actions: a force in one of four directions (north, south, east, west) times one of three
    magnitudes, numbered 3 · direction + magnitude. Magnitude 1 is 100 N on a ball of 4.19 kg.
    With probability `slip` the force of a step is that of an action drawn uniformly.

    ## Reward Space
    One objective per goal: r_i = c_i exp(-‖s - g_i‖ / d0), s the position after the step.

    ## Starting State
    At rest, uniformly within `start_noise` of the middle of the start cell in x and in y.

    ## Episode Termination
    Never by itself; an episode is truncated after `horizon` steps.

    ## Arguments
    - layout: the map as text, rows on lines of their own or between slashes: `#` wall, `.` free,
      `S` start, `A`, `B`, … goals, one objective each
    - distance: d0, in metres
    - scales: c, one per goal; 1 by default
    - magnitudes: of the forces, between 0 and 1
    - horizon: steps of 0.01 s per episode
    - start_noise: in metres, 0 for none
    - contact_margin: how far from a wall the contact begins, in metres. The model's geometries have
      margins of 0.002 each; MuJoCo adds the two from version 3.5 on and took the larger before.
    - slip: probability that a random action's force takes the place of the chosen one, at every step

    ## Credits
    After the MO-PointMaze of the AETDICE paper, itself after D4RL (Fu et al.) and Gymnasium-Robotics.
    """

    rows: tuple[str, ...] = eqx.field(static=True)
    distance: float = eqx.field(static=True)
    scales: tuple[float, ...] = eqx.field(static=True)
    magnitudes: tuple[float, ...] = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    start_noise: float = eqx.field(static=True)
    contact_margin: float = eqx.field(static=True)
    slip: float = eqx.field(static=True)

    def __init__(
        self,
        layout: str,
        distance: float | int = 0.4,
        scales: Sequence[float | int] | None = None,
        magnitudes: Sequence[float | int] = (0.2, 0.6, 1.0),
        horizon: int = 300,
        start_noise: float | int = 0.0,
        contact_margin: float | int = 0.004,
        slip: float | int = 0.0,
    ) -> None:
        self.rows, self.distance, self.steps = read_map(layout), float(distance), horizon
        self.scales = tuple(map(float, [1.0] * len(goals_of(self.rows)) if scales is None else scales))
        self.magnitudes = tuple(map(float, magnitudes))
        self.start_noise, self.contact_margin = float(start_noise), float(contact_margin)
        self.slip = float(slip)

    def __check_init__(self) -> None:
        goals = goals_of(self.rows)
        if len(self.scales) != len(goals) or not all(0 < scale < math.inf for scale in self.scales):
            raise InputError(f"scales needs {len(goals)} positive numbers, one per goal, not {self.scales}")
        if not self.magnitudes or not all(0 <= magnitude <= 1 for magnitude in self.magnitudes):
            raise InputError(f"magnitudes must be numbers between 0 and 1, not {self.magnitudes}")
        if not 0 < self.distance < math.inf:
            raise InputError(f"distance must be positive, not {self.distance}")
        if self.steps < 1 or int(self.steps) != self.steps:
            raise InputError(f"the horizon must be a whole number of steps, at least 1, not {self.steps}")
        if not 0 <= self.start_noise <= 0.5 - RADIUS:
            raise InputError(
                f"start_noise must lie between 0 and {0.5 - RADIUS}, where the ball touches the wall, "
                f"not {self.start_noise}"
            )
        if not 0 <= self.contact_margin <= RADIUS:
            raise InputError(f"contact_margin must lie between 0 and {RADIUS}, not {self.contact_margin}")
        if not 0 <= self.slip < 1:
            raise InputError(f"slip must be at least 0 and below 1, not {self.slip}")

    @property
    def horizon(self) -> int:
        return self.steps

    @property
    def objectives(self) -> tuple[str, ...]:
        return tuple(f"goal{goal}" for goal in goals_of(self.rows))

    @property
    def actions(self) -> int:
        return len(DIRECTIONS) * len(self.magnitudes)

    @property
    def utility_threshold(self) -> float:
        """Returns here are small positive numbers, whose logarithms should stay logarithms."""
        return 0.01

    @property
    def walls(self) -> Bool[np.ndarray, "rows columns"]:
        return walls_of(self.rows)

    @property
    def start(self) -> tuple[float, float]:
        """The middle of the start cell."""
        return self.middle(cell_of(self.rows, START))

    @property
    def goals(self) -> Float[np.ndarray, "m 2"]:
        """g: the middle of each goal's cell."""
        return np.array([self.middle(cell_of(self.rows, goal)) for goal in goals_of(self.rows)])

    @property
    def forces(self) -> Float[np.ndarray, "actions 2"]:
        """Direction × magnitude of every action, as the motors' controls."""
        return np.array([np.multiply(d, magnitude) for d in DIRECTIONS for magnitude in self.magnitudes])

    @property
    def observation_bounds(self) -> tuple[Float[np.ndarray, " o"], Float[np.ndarray, " o"]]:
        """The map, and speeds: the corner of a wall can turn some of one axis' speed to the other."""
        rows, columns = len(self.rows), len(self.rows[0])
        high = np.array([columns / 2, rows / 2, 1.5 * SPEED_LIMIT, 1.5 * SPEED_LIMIT])
        return -high, high

    @property
    def reward_bounds(self) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        return np.zeros(len(self.scales)), np.array(self.scales)

    def middle(self, cell: Cell) -> tuple[float, float]:
        """x and y of the middle of a cell, given as (row, column) from the top left."""
        return cell[1] + 0.5 - len(self.rows[0]) / 2, len(self.rows) / 2 - cell[0] - 0.5

    def reset(self, key: PRNGKeyArray) -> Float[Array, " 4"]:
        noise = self.start_noise * jax.random.uniform(key, (2,), float, -1, 1)
        return jnp.concatenate([jnp.asarray(self.start, float) + noise, jnp.zeros(2)])

    def step(
        self, key: PRNGKeyArray, state: Float[Array, " 4"], action: Int[Array, ""]
    ) -> tuple[Float[Array, " 4"], Float[Array, " m"], Bool[Array, ""]]:
        if self.slip:
            chance, choice = jax.random.split(key)
            other = jax.random.randint(choice, (), 0, self.actions, action.dtype)
            action = jnp.where(jax.random.bernoulli(chance, self.slip), other, action)
        state = self.push(state, jnp.asarray(self.forces, state.dtype)[action])
        return state, self.reward(state[:2]), jnp.zeros((), dtype=bool)

    def push(self, state: Float[Array, " 4"], control: Float[Array, " 2"]) -> Float[Array, " 4"]:
        """The state one step later under any control: the two motors' shares of their full force."""
        velocity = jnp.clip(state[2:], -SPEED_LIMIT, SPEED_LIMIT)
        return jnp.concatenate(slide(state[:2], velocity, GEAR * control, self.walls, self.contact_margin))

    def reward(self, position: Float[Array, " 2"]) -> Float[Array, " m"]:
        """r_i = c_i exp(-‖s - g_i‖ / d0)."""
        apart = jnp.asarray(self.goals, position.dtype) - position[None]
        distances = jnp.sqrt(jnp.sum(apart**2, axis=1))
        return jnp.asarray(self.scales, position.dtype) * jnp.exp(-distances / self.distance)

    def observe(self, state: Float[Array, " 4"]) -> Float[Array, " o"]:
        return state

    def text(self, state: Float[Array, " 4"]) -> str:
        x, y, vx, vy = (float(entry) for entry in state)
        row, column = math.floor(len(self.rows) / 2 - y), math.floor(x + len(self.rows[0]) / 2)
        drawn = [list(line) for line in self.rows]
        drawn[row][column] = "o"
        lines = ["".join(line) for line in drawn]
        return "\n".join([*lines, f"at ({x:+.4f}, {y:+.4f}) m, speed ({vx:+.4f}, {vy:+.4f}) m/s"]) + "\n"

    def picture(self, state: Float[Array, " 4"], path: Sequence[Any] = ()) -> np.ndarray:
        way = np.array([np.asarray(there)[:2] for there in (*path, state)])
        return draw_maze(self.walls, self.goals, self.distance, way)


point_maze_2obj = functools.partial(PointMaze, layout=TWO_GOALS, distance=0.4, scales=(2.0, 1.0))
"""Two goals, the first of which counts double."""
point_maze_3obj = functools.partial(PointMaze, layout=THREE_GOALS, distance=0.3)
"""Three goals around the start."""
