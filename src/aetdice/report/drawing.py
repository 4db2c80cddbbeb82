"""Words, bars and pictures on one sheet, with Pillow; needs the extra `aetdice[plot]`."""

import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from aetdice.envs.pixels import GROUPS, INK, LINE, WHITE, Colour, Image
from aetdice.errors import InputError

Pixels = float | int
PALE: Colour = (128, 134, 146)
ROW = 18
"""Pixels from one bar to the next."""
VALUE = 46
"""Pixels for a bar's number."""


class Scale(NamedTuple):
    """What the ends of a bar mean; 0 lies between them."""

    low: float
    high: float

    @classmethod
    def of(cls, accrued: Sequence[Float[np.ndarray, "frames m"]]) -> "Scale":
        """From the least to the most that was ever accrued."""
        values = np.concatenate([entries.ravel() for entries in accrued])
        low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
        return cls(low, high if high > low else 1.0)

    def number(self, value: float) -> str:
        """With as many decimals as the size of all numbers asks for."""
        size = max(-self.low, self.high)
        return f"{value:.2f}" if size < 100 else f"{value:.1f}" if size < 1000 else f"{value:.0f}"

    def place(self, value: float | int, width: Pixels) -> float:
        return (value - self.low) / (self.high - self.low) * width


def pillow() -> Any:
    """Pillow, in which pictures are put together."""
    try:
        import PIL.Image
        import PIL.ImageDraw
        import PIL.ImageFont
    except ImportError as error:
        raise InputError("animations need Pillow and matplotlib: pip install 'aetdice[plot]'") from error
    return PIL


@functools.cache
def font(size: int, bold: bool = False) -> Any:
    """DejaVu Sans, which knows Greek letters and comes with matplotlib."""
    pil = pillow()
    try:
        import matplotlib
    except ImportError as error:
        raise InputError("animations need Pillow and matplotlib: pip install 'aetdice[plot]'") from error
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return pil.ImageFont.truetype(str(Path(matplotlib.get_data_path(), "fonts", "ttf", name)), size)


class Sheet:
    """A white picture to draw on; places are (left, top) in pixels."""

    def __init__(self, width: int, height: int) -> None:
        pil = pillow()
        self.image: Any = pil.Image.new("RGB", (width, height), WHITE)
        self.pen: Any = pil.ImageDraw.Draw(self.image)

    def write(
        self, left: Pixels, top: Pixels, text: str, size: int = 12, *, bold: bool = False,
        colour: Colour = INK, right: bool = False, most: Pixels | None = None,
    ) -> None:  # fmt: skip
        """One line of words that begins or (`right`) ends here, shortened to at most `most` pixels."""
        face = font(size, bold)
        if most is not None and face.getlength(text) > most:
            while text and face.getlength(f"{text}…") > most:
                text = text[:-1]
            text = f"{text}…"
        self.pen.text((left, top), text, font=face, fill=colour, anchor="ra" if right else "la")

    def paste(self, left: int, top: int, picture: Image, size: tuple[int, int]) -> None:
        """A picture in another size, framed."""
        pil = pillow()
        small = pil.Image.fromarray(picture).resize(size, pil.Image.Resampling.LANCZOS)
        self.image.paste(small, (left, top))
        self.pen.rectangle((left, top, left + size[0] - 1, top + size[1] - 1), outline=LINE)

    def fill(self, left: Pixels, top: Pixels, right: Pixels, bottom: Pixels, colour: Colour) -> None:
        self.pen.rectangle((left, top, max(left, right), bottom), fill=colour)

    def bars(
        self, left: int, top: int, width: int, names: Sequence[str], values: Float[np.ndarray, " m"],
        scale: Scale,
    ) -> None:  # fmt: skip
        """A bar per objective in its colour: its name, how long it is, its number."""
        longest = max(font(11, bold=True).getlength(name) for name in names)
        named = min(width // 2 - VALUE // 2, 7 + math.ceil(longest))
        long = width - named - VALUE
        zero = left + named + scale.place(0, long)
        for index, (name, value) in enumerate(zip(names, values.tolist(), strict=True)):
            y, colour = top + index * ROW, GROUPS[index % len(GROUPS)]
            self.write(left, y, name, 11, colour=colour, bold=True, most=named - 6)
            self.fill(left + named, y + 3, left + named + long, y + 11, (240, 241, 244))
            if value:
                ends = sorted((zero, left + named + scale.place(value, long)))
                self.fill(ends[0], y + 3, ends[1], y + 11, colour)
            if scale.low < 0:
                self.fill(zero, y + 1, zero, y + 13, PALE)
            self.write(left + width, y, scale.number(value), 11, right=True)


def shrunk(picture: Image, width: int, height: int) -> tuple[int, int]:
    """The size in which a picture fits into the given one."""
    factor = min(width / picture.shape[1], height / picture.shape[0])
    return max(1, round(picture.shape[1] * factor)), max(1, round(picture.shape[0] * factor))
