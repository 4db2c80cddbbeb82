"""Draw fair-taxi.png from the results of `aetdice reproduce fair-taxi`; run it from anywhere."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from aetdice.envs import FairTaxi
from aetdice.report.figures import COLOURS, pyplot

FIGURES = Path(__file__).parent
RESULTS = FIGURES.parents[1] / "experiments" / "results" / "fair_taxi.json"
INK, GREY = "#2e3440", "#8a8f99"
GROUP_COLOURS = (COLOURS["only group 0"], COLOURS["only group 1"])
BEHAVIOUR = "whom an episode serves"
ORDER = ("only group 0", "both groups", "only group 1")


def main() -> None:
    plt = pyplot()
    plt.rcParams.update({"font.size": 9, "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": GREY})
    plt.rcParams.update({"xtick.color": INK, "ytick.color": INK, "axes.spines.top": False})
    study = json.loads(RESULTS.read_text(encoding="utf-8"))["tables"]["fair-taxi"]
    settings = {name: row["settings"][row["shown"]] for name, row in study["rows"].items()}
    figure, (city, bars, gaps) = plt.subplots(
        1, 3, figsize=(11, 3.7), width_ratios=(1, 1.95, 0.9), layout="constrained"
    )
    draw_city(city)
    draw_bars(bars, {name: shares(study, name) for name in settings})
    draw_gaps(gaps, {name: setting["gap_shares"] for name, setting in settings.items()})
    figure.savefig(FIGURES / "fair-taxi.png", dpi=170)


def shares(study: dict[str, Any], name: str) -> tuple[dict[str, float], dict[str, float]]:
    """How often an episode shows each behaviour: learned, a mean over seeds, and exact."""
    row = study["rows"][name]
    learned = row["settings"][row["shown"]]["quantities"][BEHAVIOUR]
    exact = study["references"][row["optimum"]]["quantities"][BEHAVIOUR]
    return {behaviour: found["mean"] for behaviour, found in learned.items()}, exact


def draw_city(axes: Any) -> None:
    taxi = FairTaxi()
    for line in range(taxi.size + 1):
        axes.plot([0, taxi.size], [line, line], color="#e3e5ea", lw=0.8, zorder=0)
        axes.plot([line, line], [0, taxi.size], color="#e3e5ea", lw=0.8, zorder=0)
    for group, (origin, destination) in enumerate(zip(taxi.origins, taxi.destinations, strict=True)):
        (top, left), (row, column) = (np.array(cell) + 0.5 for cell in (origin, destination))
        colour = GROUP_COLOURS[group]
        arrow = {"arrowstyle": "-|>", "color": colour, "lw": 1.6, "shrinkA": 9, "shrinkB": 9}
        axes.annotate(
            "", (column, row), (left, top), arrowprops={**arrow, "connectionstyle": "arc3,rad=-0.35"}
        )
        axes.scatter(left, top, s=150, color=colour, zorder=2)
        axes.scatter(column, row, s=130, marker="s", facecolor="white", edgecolor=colour, lw=1.8, zorder=2)
        side = 1 if top < taxi.size / 2 else -1
        gain = taxi.deliveries[group] / taxi.scale
        words = f"group {group}\n{gain:g} point{'s' if gain < 1 else ''} each"
        behind = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
        place = (left + column) / 2, top + 1.75 * side
        axes.text(*place, words, color=colour, ha="center", va="center", bbox=behind)
    row, column = (cell + 0.5 for cell in taxi.start)
    axes.scatter(column, row, s=240, marker="s", color="#f2c230", edgecolor=INK, lw=1.2, zorder=2)
    axes.text(column, row, "T", ha="center", va="center_baseline", weight="bold", zorder=3)
    axes.set(xlim=(-0.1, taxi.size + 0.1), ylim=(taxi.size + 0.1, -0.1), aspect="equal", xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    axes.set_anchor("N")
    axes.set_title("One taxi, two groups, 50 steps", loc="left", fontsize=10, weight="bold")


def draw_bars(axes: Any, policies: dict[str, tuple[dict[str, float], dict[str, float]]]) -> None:
    width = 0.38
    for i, (learned, exact) in enumerate(policies.values()):
        for x, shares, shade in ((i - width / 2, learned, 1.0), (i + width / 2, exact, 0.45)):
            bottom = 0.0
            for name in ORDER:
                axes.bar(x, shares[name], 0.94 * width, bottom=bottom, color=COLOURS[name], alpha=shade, lw=0)
                bottom += shares[name]
            word = "learned" if shade == 1 else "exact"
            axes.text(x, 1.015, word, ha="center", va="bottom", fontsize=6.5, color=GREY)
    axes.set_xticks(range(len(policies)), list(policies))
    axes.tick_params(length=0)
    axes.set(ylim=(0, 1.06), yticks=(0, 0.25, 0.5, 0.75, 1.0), ylabel="share of episodes")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.spines[["left", "right"]].set_visible(False)
    axes.set_title("Whom it serves within an episode, by objective", loc="left", fontsize=10, weight="bold")
    for name, x, y in (("both groups", 0, 0.5), ("only group 0", 5, 0.25), ("only group 1", 5, 0.75)):
        axes.text(x - width / 2, y, name, color="white", rotation=90, ha="center", va="center", weight="bold")


def draw_gaps(axes: Any, seeds: dict[str, list[float]]) -> None:
    for i, (name, gaps) in enumerate(seeds.items()):
        axes.plot([0, 1], [i, i], color="#e3e5ea", lw=5, solid_capstyle="round", zorder=0)
        axes.plot([0, float(np.mean(gaps))], [i, i], color="#b9c6d8", lw=5, solid_capstyle="round", zorder=1)
        axes.scatter(gaps, [i] * len(gaps), s=16, color=INK, zorder=2, lw=0)
        axes.text(1.05, i, f"{np.mean(gaps):.1%}", va="center", fontsize=8.5)
        axes.text(-0.06, i, name, va="center", ha="right", fontsize=8.5)
    axes.set(xlim=(-0.4, 1.32), ylim=(len(seeds) - 0.5, -0.6), yticks=[], xticks=(0, 1))
    axes.set_xticklabels(["cloning", "exact\noptimum"])
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.set_title("How much of the gap it closes", loc="left", fontsize=10, weight="bold")


if __name__ == "__main__":
    main()
