"""Figures; needs the extra `aetdice[plot]`. Each is drawn from data that is saved beside it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from aetdice.envs.pixels import GROUPS
from aetdice.errors import InputError
from aetdice.results import write_whole

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


def behaviour_shares(path: Path, alphas: Sequence[float], shares: Mapping[str, Sequence[float]]) -> None:
    """Stacked shares of behaviours over BSR's α, from ESR on the left to SER on the right."""
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    axes.stackplot(
        alphas, *shares.values(), labels=list(shares), colors=[COLOURS[name] for name in shares], lw=0
    )
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="α  (0: ESR, 1: SER)", ylabel="share of episodes")
    axes.set_title("Whom the optimal taxi serves within an episode, BSR(α)", loc="left", fontsize=11)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, reverse=True)
    write_whole(path, lambda partial: figure.savefig(partial, dpi=160))
    plt.close(figure)


def return_distributions(
    path: Path, returns: Float[np.ndarray, "n m"], objectives: Sequence[str], title: str
) -> None:
    """A dataset's return vectors: two objectives as a scatter with marginals, more of them pair by pair."""
    if returns.shape[1] < 2 or returns.shape[1] != len(objectives):
        raise InputError(f"at least two objectives with a name each are needed, not {len(objectives)}")
    plt = pyplot()
    draw = _joint if len(objectives) == 2 else _pairs
    figure = draw(plt, returns, [f"R of {name}" for name in objectives])
    figure.suptitle(f"{title}: returns of {len(returns):,} episodes", x=0.02, ha="left", fontsize=11)
    write_whole(path, lambda partial: figure.savefig(partial, dpi=160))
    plt.close(figure)


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
