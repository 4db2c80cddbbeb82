"""Figures of walking bodies: the paths of Ants, and who stays up."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from aetdice.report.figures import pyplot, save_figure

COLOURS = {"A": "#2077b4", "B": "#e67314", "C": "#4c9a5b", "other": "#9aa0aa"}
SHADES = ("#b04a4a", "#2077b4", "#e0a800", "#4c9a5b")


def path_panels(path: Path | str, panels: Mapping[str, Mapping[str, Any]], title: str) -> None:
    """One panel per policy: x-y paths of episodes in the colour of their behaviour, shares in the corner.

    A panel has `shares` by behaviour and `paths`, each with its `behaviour` and its `path`.
    """
    plt = pyplot()
    figure, row = plt.subplots(
        1, len(panels), figsize=(3.1 * len(panels), 3.7), layout="compressed", squeeze=False, sharex=True,
        sharey=True,
    )  # fmt: skip
    for axes, (name, panel) in zip(row[0], panels.items(), strict=True):
        for episode in panel["paths"]:
            x, y = np.array(episode["path"]).T
            axes.plot(x, y, color=COLOURS[episode["behaviour"]], lw=0.8, alpha=0.6)
        words = "\n".join(f"{kind}  {share:.0%}" for kind, share in panel["shares"].items())
        axes.text(0.97, 0.97, words, transform=axes.transAxes, ha="right", va="top", fontsize=8)
        axes.set_title(name, fontsize=9, loc="left")
        axes.set(xlabel="x", aspect="equal")
        axes.spines[["top", "right"]].set_visible(False)
    row[0, 0].set_ylabel("y")
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    save_figure(path, figure)


def collapse_panels(
    path: Path | str, panels: Mapping[str, Mapping[str, Any]], times: Sequence[int], title: str
) -> None:
    """The share of episodes still up over time, then for each policy the torso's height in some of them.

    A panel has `up` at the `times`, `upright` at the end, and `heights` of episodes while they last.
    """
    plt = pyplot()
    figure, row = plt.subplots(
        1, 1 + len(panels), figsize=(2.6 * (1 + len(panels)), 3.1), layout="constrained", squeeze=False
    )
    for axes, shade, (name, panel) in zip(row[0, 1:], SHADES, panels.items(), strict=False):
        row[0, 0].plot(times, panel["up"], color=shade, lw=1.8)
        for heights in panel["heights"]:
            axes.plot(times[: len(heights)], heights, color=shade, lw=0.7, alpha=0.5)
        axes.axhspan(0, 0.8, color="#d5d9e0", lw=0)
        axes.set(xlim=(0, times[-1]), ylim=(0.6, 1.6), xlabel="step")
        axes.set_title(f"{name}\n{panel['upright']:.0%} upright", fontsize=8, loc="left", color=shade)
        axes.spines[["top", "right"]].set_visible(False)
    row[0, 1].set_ylabel("height of the torso")
    row[0, 0].set(xlim=(0, times[-1]), ylim=(0, 1.02), xlabel="step", ylabel="share of episodes still up")
    row[0, 0].yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    row[0, 0].spines[["top", "right"]].set_visible(False)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    save_figure(path, figure)
