"""A few shapes on a pixel grid: enough to draw small environments without a graphics library."""

import numpy as np
from jaxtyping import UInt8

Image = UInt8[np.ndarray, "height width 3"]
Colour = tuple[int, int, int]

WHITE: Colour = (255, 255, 255)
LINE: Colour = (222, 222, 226)
INK: Colour = (46, 52, 64)
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
    rows, columns = np.ogrid[: image.shape[0], : image.shape[1]]
    image[(rows - row) ** 2 + (columns - column) ** 2 <= radius**2] = colour


def draw_line(
    image: Image,
    start: tuple[float | int, float | int],
    end: tuple[float | int, float | int],
    colour: Colour,
    width: float | int,
) -> None:
    """A straight stroke with round ends."""
    rows, columns = np.ogrid[: image.shape[0], : image.shape[1]]
    down, right = end[0] - start[0], end[1] - start[1]
    length = max(down**2 + right**2, 1e-9)
    along = np.clip(((rows - start[0]) * down + (columns - start[1]) * right) / length, 0, 1)
    distance = (rows - start[0] - along * down) ** 2 + (columns - start[1] - along * right) ** 2
    image[distance <= (width / 2) ** 2] = colour
