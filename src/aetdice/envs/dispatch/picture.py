"""Dispatch in pixels: districts along the street, calls that wait there, the van, and the clock below."""

import math
from collections.abc import Sequence

from aetdice.envs.pixels import (
    GROUPS,
    INK,
    LINE,
    WHITE,
    Colour,
    Image,
    canvas,
    draw_line,
    fill_box,
    fill_disc,
    shrink,
)

CELL, SMOOTH = 96, 3
"""Pixels per district, and how many times larger it is drawn first."""
BROKEN: Colour = (196, 43, 43)


def draw_dispatch(
    waiting: Sequence[int], room: int, street: Sequence[int], van: int, sound: bool, left: float
) -> Image:
    """Calls by district, of which `room` find a place; `left` is the share of the shift that remains."""
    scale = CELL * SMOOTH
    image = canvas((len(street) * CELL + 24) * SMOOTH, 3 * scale)
    middle = 0.9 * scale
    draw_line(image, (scale / 2, middle), ((len(street) - 0.5) * scale, middle), LINE, scale / 6)
    for place, district in enumerate(street):
        row, colour = (place + 0.5) * scale, GROUPS[district % len(GROUPS)]
        fill_disc(image, row, middle, 0.3 * scale, colour)
        for call in range(room):
            at = middle + (0.75 + 0.5 * call) * scale
            fill_disc(image, row, at, 0.16 * scale, colour if call < waiting[district] else LINE)
            if call >= waiting[district]:
                fill_disc(image, row, at, 0.13 * scale, WHITE)
        if district == van:
            _draw_van(image, row, middle - 0.02 * scale, scale, sound)
    top = len(street) * scale
    fill_box(image, top + 6 * SMOOTH, 12 * SMOOTH, top + 14 * SMOOTH, 3 * scale - 12 * SMOOTH, LINE)
    until = 12 * SMOOTH + round(left * (3 * scale - 24 * SMOOTH))
    fill_box(image, top + 6 * SMOOTH, 12 * SMOOTH, top + 14 * SMOOTH, until, INK)
    return shrink(image, SMOOTH)


def _draw_van(image: Image, row: float, column: float, scale: int, sound: bool) -> None:
    """A box with a cab and two wheels; a broken one is red and crossed out."""
    colour = INK if sound else BROKEN
    ends = (row - 0.03 * scale, column - 0.14 * scale), (row - 0.03 * scale, column + 0.14 * scale)
    draw_line(image, *ends, WHITE, 0.3 * scale)
    draw_line(image, *ends, colour, 0.24 * scale)
    for wheel in (-0.12, 0.12):
        fill_disc(image, row + 0.1 * scale, column + wheel * scale, 0.065 * scale, WHITE)
        fill_disc(image, row + 0.1 * scale, column + wheel * scale, 0.05 * scale, colour)
    if sound:
        fill_disc(image, row - 0.05 * scale, column + 0.14 * scale, 0.05 * scale, WHITE)
        return
    for slope in (-1, 1):
        reach = 0.07 * scale * math.sqrt(0.5)
        centre = row - 0.03 * scale
        start, end = (centre - slope * reach, column - reach), (centre + slope * reach, column + reach)
        draw_line(image, start, end, WHITE, 0.035 * scale)
