"""Figures; needs the extra `aetdice[plot]`. Each is drawn from data that is saved beside it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from aetdice.envs.pixels import GROUPS
from aetdice.errors import InputError
from aetdice.files import write_whole

COLOURS = {"both groups": "#4c9a5b", "only group 0": "#2077b4", "only group 1": "#e67314"}


def pyplot() -> Any:
    """matplotlib, drawing to files only."""
    try:
        import matplotlib
    except ImportError as error:
        raise InputError("figures need matplotlib: pip install 'aetdice[plot]'") from error
    matplotlib.use("Agg")
    import matplotlib.pyplot

    return matplotlib.pyplot


def save_figure(path: Path | str, figure: Any) -> None:
    """Write a figure whole or not at all, and forget it."""
    write_whole(Path(path), lambda partial: figure.savefig(partial, dpi=160))
    pyplot().close(figure)


def return_distributions(
    path: Path | str, returns: Float[np.ndarray, "n m"], objectives: Sequence[str], title: str
) -> None:
    """A dataset's return vectors: two objectives as a scatter with marginals, more of them pair by pair."""
    if returns.shape[1] < 2 or returns.shape[1] != len(objectives):
        raise InputError(f"at least two objectives with a name each are needed, not {len(objectives)}")
    plt = pyplot()
    draw = _joint if len(objectives) == 2 else _pairs
    figure = draw(plt, returns, [f"R of {name}" for name in objectives])
    figure.suptitle(f"{title}: returns of {len(returns):,} episodes", x=0.02, ha="left", fontsize=11)
    save_figure(path, figure)


def _joint(plt: Any, returns: Float[np.ndarray, "n 2"], labels: Sequence[str]) -> Any:
    """One scatter, a histogram of each objective along its axis."""
    figure, ((top, corner), (middle, right)) = plt.subplots(
        2, 2, figsize=(5.6, 5.2), width_ratios=(4, 1), height_ratios=(1, 4), layout="constrained"
    )
    corner.axis("off")
    _scatter(middle, returns[:, 0], returns[:, 1])
    middle.set(xlabel=labels[0], ylabel=labels[1])
    _histogram(top, returns[:, 0], _hex(0))
    _histogram(right, returns[:, 1], _hex(1), orientation="horizontal")
    top.set_xlim(middle.get_xlim())
    right.set_ylim(middle.get_ylim())
    top.tick_params(labelbottom=False)
    right.tick_params(labelleft=False)
    return figure


def _pairs(plt: Any, returns: Float[np.ndarray, "n m"], labels: Sequence[str]) -> Any:
    """Histograms on the diagonal, a scatter of every pair below it."""
    m = len(labels)
    figure, panels = plt.subplots(m, m, figsize=(2.3 * m, 2.2 * m), sharex="col", layout="constrained")
    for row, line in enumerate(panels):
        for column, axes in enumerate(line):
            if column > row:
                axes.axis("off")
            elif column == row:
                _histogram(axes, returns[:, row], _hex(row))
            else:
                _scatter(axes, returns[:, column], returns[:, row])
                axes.set_ylabel(labels[row] if column == 0 else "")
                axes.tick_params(labelleft=column == 0)
            if row == m - 1:
                axes.set_xlabel(labels[column])
    panels[0, 0].set_ylabel("episodes")
    return figure


def _scatter(axes: Any, x: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"]) -> None:
    axes.scatter(x, y, s=9, alpha=0.3, color="#2e3440", lw=0)
    axes.spines[["top", "right"]].set_visible(False)


def _histogram(axes: Any, values: Float[np.ndarray, " n"], colour: str, **options: Any) -> None:
    axes.hist(values, bins=40, color=colour, alpha=0.85, **options)
    axes.spines[["top", "right"]].set_visible(False)
    axes.locator_params(axis="x" if options else "y", nbins=3)


def _hex(objective: int) -> str:
    """The colour an objective has in every picture."""
    return "#{:02x}{:02x}{:02x}".format(*GROUPS[objective % len(GROUPS)])


def share_bars(
    path: Path | str, shares: Mapping[str, Mapping[str, Mapping[str, float]]], title: str, label: str
) -> None:
    """Behaviours side by side: for every setting one stacked bar per source (learner, exact, …)."""
    plt = pyplot()
    sources = list(next(iter(shares.values())))
    figure, axes = plt.subplots(figsize=(1.5 + 1.0 * len(shares), 3.6), layout="constrained")
    width = 0.8 / len(sources)
    for i, by_source in enumerate(shares.values()):
        for j, source in enumerate(sources):
            bottom, x = 0.0, i + (j - (len(sources) - 1) / 2) * width
            for behaviour, share in by_source[source].items():
                axes.bar(x, share, 0.9 * width, bottom=bottom, color=COLOURS[behaviour], lw=0)
                bottom += share
            axes.text(x, 1.01, source, rotation=90, ha="center", va="bottom", fontsize=7, color="#555555")
    axes.set_xticks(range(len(shares)), list(shares))
    axes.set(ylim=(0, 1), xlabel=label, ylabel="share of episodes")
    axes.set_title(title, loc="left", fontsize=11, pad=34)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.spines[["top", "right"]].set_visible(False)
    names = list(next(iter(shares.values()))[sources[0]])[::-1]
    handles = [plt.Rectangle((0, 0), 1, 1, color=COLOURS[name]) for name in names]
    axes.legend(handles, names, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    save_figure(path, figure)


def quantile_curves(
    path: Path | str,
    levels: Sequence[float],
    curves: Mapping[str, Sequence[Sequence[float]]],
    objectives: Sequence[str],
    title: str,
) -> None:
    """Quantiles of every objective's return, one panel per objective and one curve per policy."""
    plt = pyplot()
    figure, panels = plt.subplots(
        1, len(objectives), figsize=(3.4 * len(objectives), 3.2), layout="constrained", squeeze=False
    )
    shades = plt.get_cmap("viridis")(np.linspace(0, 0.85, len(curves)))
    for i, (axes, objective) in enumerate(zip(panels[0], objectives, strict=True)):
        for shade, (name, quantiles) in zip(shades, curves.items(), strict=True):
            axes.plot(levels, quantiles[i], color=shade, lw=1.8, label=name)
        axes.set(xlim=(0, 1), xlabel="quantile", ylabel=f"return of {objective}")
        axes.spines[["top", "right"]].set_visible(False)
    panels[0, -1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    figure.suptitle(title, x=0.02, ha="left", fontsize=11)
    save_figure(path, figure)
