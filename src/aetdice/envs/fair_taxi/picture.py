"""Fair-Taxi in pixels: where groups wait (full) and want to go (framed), the way so far, who is on board."""

import itertools
from collections.abc import Sequence

from aetdice.envs.pixels import (
    GROUPS,
    INK,
    LINE,
    WAY,
    WHITE,
    Colour,
    Image,
    canvas,
    draw_frame,
    draw_line,
    fill_box,
    fill_disc,
    shrink,
)

Cell = tuple[int, int]
CELL, SMOOTH = 48, 2
"""Pixels per cell, and how many times larger it is drawn first."""


def draw_taxi(
    size: int, origins: Sequence[Cell], destinations: Sequence[Cell], way: Sequence[Cell], passenger: int
) -> Image:
    """The taxi at the end of its way; passenger 0 is nobody, 1 + i group i."""
    scale = CELL * SMOOTH
    side, edge, thick = size * scale, scale // 10, scale // 10
    image = canvas(side, side)
    for line in range(0, side + 1, scale):
        fill_box(image, line - 1, 0, line + 1, side, LINE)
        fill_box(image, 0, line - 1, side, line + 1, LINE)
    for group, (origin, destination) in enumerate(zip(origins, destinations, strict=True)):
        top, left = origin[0] * scale, origin[1] * scale
        fill_box(image, top + edge, left + edge, top + scale - edge, left + scale - edge, _colour(group))
        top, left = destination[0] * scale, destination[1] * scale
        box = (top + edge, left + edge, top + scale - edge, left + scale - edge)
        draw_frame(image, *box, _colour(group), thick)
    middles = [((row + 0.5) * scale, (column + 0.5) * scale) for row, column in way]
    for here, there in itertools.pairwise(middles):
        draw_line(image, here, there, WAY, scale / 16)
    row, column = middles[-1]
    ends = (row, column - 0.19 * scale), (row, column + 0.19 * scale)
    draw_line(image, *ends, WHITE, 0.56 * scale)
    draw_line(image, *ends, INK, 0.46 * scale)
    fill_disc(image, row, column, scale / 6, WHITE if passenger == 0 else _colour(passenger - 1))
    return shrink(image, SMOOTH)


def _colour(group: int) -> Colour:
    return GROUPS[group % len(GROUPS)]
