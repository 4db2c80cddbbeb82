"""Episodes side by side as an animation, and as a strip of frames."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from aetdice.envs.pixels import INK, LINE, Image
from aetdice.files import write_whole
from aetdice.report.drawing import PALE, ROW, Scale, Sheet, pillow, shrunk

MARGIN, HEAD, NAME = 16, 34, 22
"""Pixels around and between panels, of the line above them, and of a panel's own."""
PANEL = (300, 300)
"""The size into which a panel's picture fits."""
CELL, SIDE = (168, 168), 84
"""The same for the frames of a strip, and the width of its row names."""
COLOURS = 128
"""Of an animation: few make it small."""
NEARLY_WHITE = 249
SECONDS, REST = 7.0, 1.5
"""How long an episode takes, and how long its end is shown."""
QUICKEST, SLOWEST = 0.04, 0.6
"""Seconds per frame."""


class Panel(NamedTuple):
    """One of the episodes that are shown side by side: its moments, in order of time."""

    name: str
    times: Int[np.ndarray, " frames"]
    pictures: Sequence[Image]
    accrued: Float[np.ndarray, "frames m"]

    def at(self, time: int) -> int:
        """The last moment by then; an episode that is over stays at its end."""
        return int(np.searchsorted(self.times, time, side="right")) - 1


class SideBySide(NamedTuple):
    """Episodes that began alike, side by side."""

    panels: Sequence[Panel]
    objectives: Sequence[str]
    horizon: int
    title: str

    @property
    def times(self) -> list[int]:
        return sorted({int(time) for panel in self.panels for time in panel.times})

    @property
    def scale(self) -> Scale:
        return Scale.of([panel.accrued for panel in self.panels])


def write_animation(path: Path, episodes: Sequence[SideBySide]) -> None:
    """A GIF that shows one episode after the other, again and again."""
    frames, durations = [], []
    palette, plain = _palette(episodes), pillow().Image.Dither.NONE
    for number, episode in enumerate(episodes, start=1):
        which = "" if len(episodes) == 1 else f"episode {number} of {len(episodes)}, "
        times, scale = episode.times, episode.scale
        for time in times:
            frame = draw_frame(episode, time, scale, which)
            frames.append(frame.quantize(palette=palette, dither=plain))
        pace = min(max(SECONDS / len(times), QUICKEST), SLOWEST)
        durations += [pace] * (len(times) - 1) + [REST]
    first, *rest = frames
    milliseconds = [round(1000 * each) for each in durations]
    write_whole(
        path,
        lambda partial: first.save(
            partial, format="GIF", save_all=True, append_images=rest, duration=milliseconds, loop=0
        ),
    )


def draw_frame(episode: SideBySide, time: int, scale: Scale, which: str = "") -> Any:
    """One moment: what all panels show at this time, and what was accrued by then."""
    width, height = _largest(episode, PANEL)
    across = len(episode.panels) * (width + MARGIN) + MARGIN
    below = len(episode.objectives) * ROW
    sheet = Sheet(across, HEAD + NAME + height + 8 + below + MARGIN)
    clock = f"{which}step {time} of {episode.horizon}"
    sheet.write(across - MARGIN, 9, clock, 12, right=True)
    sheet.write(MARGIN, 8, episode.title, 13, bold=True, most=across - 2 * MARGIN - 8 * len(clock))
    sheet.fill(MARGIN, HEAD - 6, across - MARGIN, HEAD - 4, LINE)
    sheet.fill(MARGIN, HEAD - 6, MARGIN + (across - 2 * MARGIN) * time / episode.horizon, HEAD - 4, INK)
    for place, panel in enumerate(episode.panels):
        left, now = MARGIN + place * (width + MARGIN), panel.at(time)
        sheet.write(left, HEAD + 2, panel.name, 13, bold=True)
        if time >= panel.times[-1] and panel.times[-1] < episode.horizon:
            over = f"ended after {panel.times[-1]} steps"
            sheet.write(left + width, HEAD + 3, over, 11, colour=PALE, right=True)
        sheet.paste(left, HEAD + NAME, panel.pictures[now], shrunk(panel.pictures[now], width, height))
        bars = HEAD + NAME + height + 8
        sheet.bars(left, bars, width, episode.objectives, panel.accrued[now], scale)
    return sheet.image


def write_strip(path: Path, episode: SideBySide, count: int = 6) -> None:
    """A PNG of some moments, evenly over the time: a row per panel, time from left to right."""
    moments = _evenly(episode.times, count)
    width, height = _largest(episode, CELL)
    row, scale = height + 6 + len(episode.objectives) * ROW + 10, episode.scale
    sheet = Sheet(
        SIDE + len(moments) * (width + MARGIN) + MARGIN, HEAD + NAME + len(episode.panels) * row + 4
    )
    sheet.write(MARGIN, 10, episode.title, 14, bold=True, most=sheet.image.width - 2 * MARGIN)
    for column, time in enumerate(moments):
        left = SIDE + MARGIN + column * (width + MARGIN)
        label = f"step {time}" if column else "start"
        sheet.write(left, HEAD + 2, label, 12, colour=PALE)
        for line, panel in enumerate(episode.panels):
            top, now = HEAD + NAME + line * row, panel.at(time)
            sheet.paste(left, top, panel.pictures[now], shrunk(panel.pictures[now], width, height))
            sheet.bars(left, top + height + 6, width, episode.objectives, panel.accrued[now], scale)
    for line, panel in enumerate(episode.panels):
        for part, word in enumerate(panel.name.split()):
            sheet.write(MARGIN, HEAD + NAME + line * row + 2 + 17 * part, word, 13, bold=True)
        if panel.times[-1] < episode.horizon:
            over, top = f"{panel.times[-1]} steps", HEAD + NAME + line * row + 40
            sheet.write(MARGIN, top, over, 11, colour=PALE)
    small = _few_colours(sheet.image)
    write_whole(path, lambda partial: small.save(partial, format="PNG", optimize=True))


def _largest(episode: SideBySide, room: tuple[int, int]) -> tuple[int, int]:
    """The size of all panels' pictures."""
    sizes = [shrunk(panel.pictures[0], *room) for panel in episode.panels]
    return max(width for width, _ in sizes), max(height for _, height in sizes)


def _palette(episodes: Sequence[SideBySide]) -> Any:
    """Colours for all frames, from some of the first and the last episode."""
    some = [
        draw_frame(episode, time, episode.scale)
        for episode in (episodes[0], episodes[-1])
        for time in _evenly(episode.times, 4)
    ]
    sheet = pillow().Image.new("RGB", (some[0].width, sum(frame.height for frame in some)))
    for place, frame in enumerate(some):
        sheet.paste(frame, (0, place * frame.height))
    return _few_colours(sheet)


def _evenly(times: Sequence[int], count: int) -> list[int]:
    """So many of the times, the first and the last among them."""
    return [times[i] for i in np.unique(np.linspace(0, len(times) - 1, count).round().astype(int))]


def _few_colours(image: Any) -> Any:
    """The image in a palette of its own, in which white stays white."""
    few = image.quantize(COLOURS, dither=pillow().Image.Dither.NONE)
    colours = np.array(few.getpalette()).reshape(-1, 3)
    colours[colours.min(axis=1) >= NEARLY_WHITE] = 255
    few.putpalette(colours.ravel().tolist())
    return few
