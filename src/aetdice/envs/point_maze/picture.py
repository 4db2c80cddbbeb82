"""A maze in pixels: walls, goals with their reach, the way so far and the ball."""

import itertools

import numpy as np
from jaxtyping import Bool, Float

from aetdice.envs.pixels import (
    GROUPS,
    INK,
    WAY,
    WHITE,
    Colour,
    Image,
    canvas,
    draw_line,
    fill_box,
    fill_disc,
    shrink,
)
from aetdice.envs.point_maze.contacts import RADIUS

CELL, SMOOTH = 64, 4
"""Pixels per cell, and how many times larger it is drawn first."""
STONE: Colour = (120, 126, 140)


def draw_maze(
    walls: Bool[np.ndarray, "rows columns"],
    goals: Float[np.ndarray, "m 2"],
    reach: float,
    way: Float[np.ndarray, "n 2"],
) -> Image:
    """The ball at the end of its way; around each goal a disc of the distance at which r_i = c_i / e."""
    scale = CELL * SMOOTH
    rows, columns = walls.shape

    def pixel(point: Float[np.ndarray, " 2"]) -> tuple[float, float]:
        return scale * (rows / 2 - float(point[1])), scale * (columns / 2 + float(point[0]))

    image = canvas(rows * scale, columns * scale)
    for goal, colour in zip(goals, _colours(len(goals)), strict=True):
        tint = tuple(round(0.75 * 255 + 0.25 * channel) for channel in colour)
        fill_disc(image, *pixel(goal), reach * scale, (tint[0], tint[1], tint[2]))
    for row, column in np.argwhere(walls).tolist():
        fill_box(image, row * scale, column * scale, (row + 1) * scale, (column + 1) * scale, STONE)
    for here, there in itertools.pairwise(way):
        draw_line(image, pixel(here), pixel(there), WAY, scale / 32)
    for goal, colour in zip(goals, _colours(len(goals)), strict=True):
        fill_disc(image, *pixel(goal), 0.06 * scale, colour)
    fill_disc(image, *pixel(way[-1]), RADIUS * scale, WHITE)
    fill_disc(image, *pixel(way[-1]), RADIUS * scale * 0.85, INK)
    return shrink(image, SMOOTH)


def _colours(goals: int) -> list[Colour]:
    return [GROUPS[goal % len(GROUPS)] for goal in range(goals)]
