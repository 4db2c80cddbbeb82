"""A few shapes on a pixel grid: enough to draw small environments without a graphics library."""

import math

import numpy as np
from jaxtyping import UInt8

Image = UInt8[np.ndarray, "height width 3"]
Colour = tuple[int, int, int]

WHITE: Colour = (255, 255, 255)
LINE: Colour = (222, 222, 226)
INK: Colour = (46, 52, 64)
WAY: Colour = (150, 156, 168)
GROUPS: tuple[Colour, ...] = ((32, 119, 180), (230, 115, 20), (44, 145, 80), (160, 70, 160), (150, 110, 60))
"""Blue, orange, green, purple, brown: one colour per objective, reused in turn."""


def canvas(height: int, width: int) -> Image:
    return np.full((height, width, 3), 255, dtype=np.uint8)


def fill_box(image: Image, top: int, left: int, bottom: int, right: int, colour: Colour) -> None:
    image[max(top, 0) : bottom, max(left, 0) : right] = colour


def draw_frame(
    image: Image, top: int, left: int, bottom: int, right: int, colour: Colour, width: int
) -> None:
    """A rectangle's outline, inside its edges."""
    fill_box(image, top, left, top + width, right, colour)
    fill_box(image, bottom - width, left, bottom, right, colour)
    fill_box(image, top, left, bottom, left + width, colour)
    fill_box(image, top, right - width, bottom, right, colour)


def fill_disc(
    image: Image, row: float | int, column: float | int, radius: float | int, colour: Colour
) -> None:
    draw_line(image, (row, column), (row, column), colour, 2 * radius)


def draw_line(
    image: Image,
    start: tuple[float | int, float | int],
    end: tuple[float | int, float | int],
    colour: Colour,
    width: float | int,
) -> None:
    """A straight stroke with round ends."""
    (top, bottom), (left, right) = (
        (max(math.floor(min(ends) - width / 2), 0), math.ceil(max(ends) + width / 2) + 1)
        for ends in zip(start, end, strict=True)
    )
    window = image[top:bottom, left:right]
    rows, columns = np.ogrid[top : top + window.shape[0], left : left + window.shape[1]]
    down, across = end[0] - start[0], end[1] - start[1]
    length = max(down**2 + across**2, 1e-9)
    along = np.clip(((rows - start[0]) * down + (columns - start[1]) * across) / length, 0, 1)
    distance = (rows - start[0] - along * down) ** 2 + (columns - start[1] - along * across) ** 2
    window[distance <= (width / 2) ** 2] = colour


def shrink(image: Image, factor: int) -> UInt8[np.ndarray, "smaller narrower 3"]:
    """Every factor × factor pixels averaged into one, so that edges drawn large come out smooth."""
    corners = [image[row::factor, column::factor] for row in range(factor) for column in range(factor)]
    total = np.full(corners[0].shape, factor**2 // 2, np.uint16)  # rounds, below
    for corner in corners:
        total += corner
    return (total // factor**2).astype(np.uint8)
