"""Figures of what policies return: scatters of episodes, and scores against a hyper-parameter."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from aetdice.report.figures import pyplot, save_figure

INK, PALE, ACCENT, GOLD = "#2e3440", "#d5d9e0", "#2077b4", "#e0a800"
ACROSS = 4
HEIGHT = float(np.sqrt(3) / 2)


def return_panels(
    path: Path | str,
    episodes: Mapping[str, Sequence[Sequence[float]]],
    data: Sequence[Sequence[float]],
    marks: Mapping[str, Sequence[Mapping[str, Any]]],
    objectives: Sequence[str],
    title: str,
) -> None:
    """One panel per method: its episodes over those of the dataset, and the best schedules as stars.

    Two objectives are the axes. More are shown as shares of the episode's sum, in a triangle for
    three of them, shaded by that sum. `marks` gives the panels their schedules, each with its
    returns and its probability.
    """
    plt = pyplot()
    rows = -(-len(episodes) // ACROSS)
    across = min(ACROSS, len(episodes))
    flat = len(objectives) == 2
    figure, panels = plt.subplots(
        rows,
        across,
        figsize=(2.5 * across, 2.45 * rows + 0.4),
        layout="constrained",
        squeeze=False,
        sharex=flat,
        sharey=flat,
    )
    draw = _plane if flat else _triangle
    shade = None
    for axes, (name, returns) in zip(panels.flat, episodes.items(), strict=False):
        shade = draw(axes, np.array(returns), np.array(data), marks.get(name, ()), objectives) or shade
        axes.set_title(name, fontsize=9, loc="left")
    for axes in panels.flat[len(episodes) :]:
        axes.axis("off")
    if shade is not None:
        figure.colorbar(shade, ax=panels, shrink=0.5, aspect=30, pad=0.01, label="sum of returns")
    if flat:
        for axes in panels.flat:
            axes.label_outer()
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    save_figure(path, figure)


def _plane(
    axes: Any,
    returns: Float[np.ndarray, "n 2"],
    data: Float[np.ndarray, "k 2"],
    marks: Sequence[Mapping[str, Any]],
    objectives: Sequence[str],
) -> None:
    axes.scatter(*data.T, s=5, color=PALE, lw=0, rasterized=True)
    axes.scatter(*returns.T, s=8, color=ACCENT, alpha=0.35, lw=0)
    for mark in marks:
        axes.scatter(
            *mark["returns"], s=140 * mark["probability"] + 30, marker="*", color=GOLD, ec=INK, lw=0.6
        )
    axes.set_xlabel(f"R of {objectives[0]}", fontsize=8)
    axes.set_ylabel(f"R of {objectives[1]}", fontsize=8)
    axes.tick_params(labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)


def _triangle(
    axes: Any,
    returns: Float[np.ndarray, "n 3"],
    data: Float[np.ndarray, "k 3"],
    marks: Sequence[Mapping[str, Any]],
    objectives: Sequence[str],
) -> Any:
    axes.plot(*np.array([[0, 0], [1, 0], [0.5, HEIGHT], [0, 0]]).T, color=INK, lw=0.8)
    for objective, (x, y), place in zip(
        objectives, ((0.5, HEIGHT), (0, 0), (1, 0)), ("bottom", "top", "top"), strict=True
    ):
        away = 0.03 if place == "bottom" else -0.04
        axes.text(x, y + away, objective, ha="center", va=place, fontsize=7, color="#555555")
    axes.scatter(*_shares(data).T, s=4, color=PALE, lw=0, rasterized=True)
    shade = axes.scatter(
        *_shares(returns).T, s=8, c=returns.sum(axis=1), cmap="viridis", alpha=0.6, lw=0, vmin=0,
        vmax=float(data.sum(axis=1).max()),
    )  # fmt: skip
    for mark in marks:
        place = _shares(np.array([mark["returns"]]))[0]
        axes.scatter(*place, s=140 * mark["probability"] + 30, marker="*", color=GOLD, ec=INK, lw=0.6)
    axes.set(aspect="equal", xlim=(-0.12, 1.12), ylim=(-0.16, 1.0))
    axes.axis("off")
    return shade


def _shares(returns: Float[np.ndarray, "n 3"]) -> Float[np.ndarray, "n 2"]:
    """Where an episode lies between the corners: the first on top, then left and right."""
    shares = returns / returns.sum(axis=1, keepdims=True)
    return np.column_stack([shares[:, 2] + shares[:, 0] / 2, HEIGHT * shares[:, 0]])


def beta_curves(path: Path | str, curves: Mapping[str, Mapping[str, Any]], horizon: int, title: str) -> None:
    """J against β, one panel per objective: achieved, claimed, the twin's and the best schedules'.

    `curves` has for each panel `beta`, `score`, `half`, `claimed`, `twin`, `schedule` and `selected`.
    """
    plt = pyplot()
    figure, panels = plt.subplots(
        1, len(curves), figsize=(3.3 * len(curves) + 1.2, 3.2), layout="constrained", squeeze=False
    )
    for axes, (name, curve) in zip(panels[0], curves.items(), strict=True):
        beta, score, half = (np.array(curve[key]) for key in ("beta", "score", "half"))
        axes.fill_between(beta, score - half, score + half, color=ACCENT, alpha=0.2, lw=0)
        axes.plot(beta, score, "o-", color=ACCENT, ms=4, lw=1.6, label="achieved")
        axes.plot(beta, curve["claimed"], "--", color="#888888", lw=1.2, label="claimed by the ratios")
        axes.axhline(curve["twin"], color="#b04a4a", lw=1.2, ls=":", label="cloning twin")
        if curve["schedule"] is not None:
            axes.axhline(curve["schedule"], color=GOLD, lw=1.4, label="best schedules")
        chosen = curve["selected"]
        axes.plot(beta[chosen], score[chosen], "o", ms=9, mfc="none", mec=INK, label="chosen")
        axes.set(xscale="log", xlabel="β, exact units", ylabel="J")
        axes.set_title(name, fontsize=9, loc="left")
        lowest = min(curve["twin"], score.min())
        highest = max(score.max(), curve["schedule"] or score.max())
        axes.set_ylim(lowest - 0.12 * (highest - lowest), highest + 0.12 * (highest - lowest))
        axes.invert_xaxis()
        above = axes.secondary_xaxis("top", functions=(lambda b: b / horizon, lambda b: b * horizon))
        above.set_xlabel("the paper's β", fontsize=8)
        for axis in (axes.xaxis, above.xaxis):
            axis.set_minor_formatter("")
            axis.set_tick_params(labelsize=8)
        axes.spines[["right"]].set_visible(False)
    panels[0, -1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    save_figure(path, figure)


def share_lines(
    path: Path | str, lines: Mapping[str, Mapping[str, Sequence[float]]], title: str, label: str
) -> None:
    """Shares of gaps against a number: for every line the seeds of each point, and their mean."""
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(4.2, 3.0), layout="constrained")
    shades = plt.get_cmap("viridis")(np.linspace(0.1, 0.75, len(lines)))
    for shade, (name, points) in zip(shades, lines.items(), strict=True):
        at = [int(x) for x in points]
        axes.plot(at, [np.mean(seeds) for seeds in points.values()], "o-", color=shade, lw=1.6, label=name)
        for x, seeds in zip(at, points.values(), strict=True):
            axes.plot([x] * len(seeds), seeds, ".", color=shade, alpha=0.5)
        axes.set_xticks(at)
    axes.axhline(1, color=GOLD, lw=1.4)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set(xlabel=label, ylabel="gap closed")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    axes.set_title(title, loc="left", fontsize=11)
    save_figure(path, figure)
