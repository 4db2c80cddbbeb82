"""Draw what the docs show of shares, histories, quantiles and datasets; run it from anywhere.

Shares and histories come from the results of `aetdice reproduce fair-taxi`, quantiles from those of
`aetdice reproduce fair-taxi --quick`; exact optima are solved and datasets collected here, from seed 0.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from aetdice.datasets import load_dataset, space_of
from aetdice.envs import FairTaxi
from aetdice.exact import solve
from aetdice.objectives import bsr
from aetdice.report.figures import COLOURS, pyplot, quantile_curves, return_distributions, save_figure
from aetdice.studies.fair_taxi import HISTORY, SHARES, exact_shares

FIGURES = Path(__file__).parent
RESULTS = FIGURES.parents[1] / "experiments" / "results"
ALPHAS = (0.0, *sorted({*(i / 40 for i in range(1, 40)), *(i / 200 for i in range(90, 112))}), 0.999, 1.0)
INK, GREY = "#2e3440", "#8a8f99"
ORDER = ("only group 0", "both groups", "only group 1")


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / name).read_text(encoding="utf-8"))
    return found


def main() -> None:
    plt = pyplot()
    plt.rcParams.update({"font.size": 9, "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": GREY})
    plt.rcParams.update({"xtick.color": INK, "ytick.color": INK})
    draw_alphas(plt)
    draw_quantiles()
    draw_taxi_data(plt)
    for maze in ("pointmaze-2obj", "pointmaze-3obj"):
        data = load_dataset(maze)
        return_distributions(FIGURES / f"{maze}-data.png", data.returns, data.objectives, maze)


def alpha_of(name: str) -> float:
    return {"ESR": 0.0, "SER": 1.0}.get(name) or float(name.removeprefix("BSR ").replace("ESR", "0"))


def draw_alphas(plt: Any) -> None:
    """Whom an episode serves over α, exact and learned; and what a history changes half-way."""
    figure, (areas, probe) = plt.subplots(
        1, 2, figsize=(9.6, 3.5), width_ratios=(1.5, 1), layout="constrained"
    )
    space = space_of(FairTaxi())
    exact = [exact_shares(solve(space, bsr(alpha), check=False)) for alpha in ALPHAS]
    stacked = [[shares[name] for shares in exact] for name in ORDER]
    areas.stackplot(ALPHAS, stacked, colors=[COLOURS[name] for name in ORDER], alpha=0.45, lw=0)
    rows = read("fair_taxi.json")["tables"]["fair-taxi"]["rows"]
    learned = {name: row["settings"][row["shown"]]["quantities"] for name, row in rows.items()}
    for name, found in learned.items():
        x, bottom = alpha_of(name), 0.0
        for behaviour in ORDER:
            share = found[SHARES][behaviour]["mean"]
            areas.bar(x, share, 0.025, bottom=bottom, color=COLOURS[behaviour], edgecolor="white", lw=0.6)
            bottom += share
    areas.set(xlim=(-0.03, 1.03), ylim=(0, 1), xlabel="α of BSR, from ESR (0) to SER (1)")
    areas.set_ylabel("share of episodes")
    areas.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    for words, x, y in (
        ("only group 0", 0.645, 0.2),
        ("both groups", 0.125, 0.5),
        ("only group 1", 0.645, 0.8),
    ):
        areas.text(x, y, words, ha="center", va="center", color=INK)
    areas.set_title("Whom an episode serves: exact (areas), learned (bars)", loc="left", fontsize=10)
    draw_probe(probe, {name: found[HISTORY] for name, found in learned.items()})
    for axes in (areas, probe):
        axes.spines[["top", "right"]].set_visible(False)
    save_figure(FIGURES / "fair-taxi-alphas.png", figure)


def draw_probe(axes: Any, histories: dict[str, dict[str, dict[str, float]]]) -> None:
    width, colours = 0.38, ("#4c9a5b", "#b9c6d8")
    for i, found in enumerate(histories.values()):
        for j, (colour, share) in enumerate(zip(colours, found.values(), strict=True)):
            x = i + (j - 0.5) * width
            axes.bar(x, share["mean"], 0.92 * width, color=colour, lw=0)
            axes.errorbar(x, share["mean"], share["sd"], color=INK, lw=1)
            if share["mean"] < 0.005:
                axes.text(x, 0.012, "0", ha="center", fontsize=7, color=GREY)
    names = [
        f"group 0 {words}" if "served 3" not in words else words for words in next(iter(histories.values()))
    ]
    handles = [axes.bar(0, 0, color=colour) for colour in colours]
    axes.legend(handles, names, frameon=False, loc="upper right", fontsize=8)
    axes.set_xticks(range(len(histories)), [name.replace(" ", "\n") for name in histories])
    axes.set(ylim=(0, 1.04), ylabel="episodes that turn to group 1")
    axes.tick_params(axis="x", length=0)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_title("Half-way, empty, where group 0 is delivered", loc="left", fontsize=10)


def draw_quantiles() -> None:
    """Quantiles of both groups' returns, by objective."""
    found = read("fair_taxi_quick_quantiles.json")
    title = "Fair-Taxi: returns over episodes, by objective"
    names = ("group 0", "group 1")
    quantile_curves(FIGURES / "fair-taxi-quantiles.png", found["levels"], found["curves"], names, title)


def draw_taxi_data(plt: Any) -> None:
    """How many recorded episodes delivered how often to each group, and what was lost by invalid actions."""
    taxi, data = FairTaxi(), load_dataset("fair-taxi")
    figure, (grid, lost) = plt.subplots(
        1, 2, figsize=(8.4, 3.4), width_ratios=(1.25, 1), layout="constrained"
    )
    gains = np.asarray(taxi.deliveries) / taxi.scale
    rows = np.repeat(np.arange(len(data)), data.lengths)
    delivered = np.stack(
        [np.bincount(rows, np.isclose(data.rewards[:, i], gains[i]), len(data)) for i in range(2)], axis=1
    ).astype(int)
    counts = np.zeros(delivered.max(axis=0) + 1, int)
    np.add.at(counts, tuple(delivered.T), 1)
    shown = np.where(counts > 0, counts, np.nan)
    grid.imshow(shown.T, origin="lower", cmap="Blues", norm="log", aspect="auto")
    for (i, j), count in np.ndenumerate(counts):
        if count:
            dark = count > 0.3 * counts.max()
            grid.text(i, j, str(count), ha="center", va="center", fontsize=7, color="white" if dark else INK)
    grid.set(xlabel="deliveries to group 0", ylabel="deliveries to group 1")
    grid.set_title(f"Whom {len(data):,} recorded episodes served", loc="left", fontsize=10)
    invalid = np.bincount(rows, (data.rewards < 0).any(axis=1), len(data)).astype(int)
    lost.hist(invalid, bins=np.arange(invalid.max() + 2) - 0.5, color=GREY)
    lost.set(xlabel="invalid actions in an episode", ylabel="episodes", xticks=range(0, invalid.max() + 1, 2))
    lost.set_title("What an episode lost by invalid actions", loc="left", fontsize=10)
    for axes in (grid, lost):
        axes.spines[["top", "right"]].set_visible(False)
    save_figure(FIGURES / "fair-taxi-data.png", figure)


if __name__ == "__main__":
    main()
