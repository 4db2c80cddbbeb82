"""Figures; needs the extra `aetdice[plot]`. Each is drawn from data that is saved beside it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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
