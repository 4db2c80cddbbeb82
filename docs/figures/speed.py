"""Draw speed.png from the results of `make bench`; run it from anywhere."""

import json
from pathlib import Path
from typing import Any

from aetdice.report.figures import pyplot

FIGURES = Path(__file__).parent
RESULTS = FIGURES.parents[1] / "benchmarks" / "results" / "bench_cpu.json"
INK, GREY, SPEED, MEMORY, COMPILING = "#2e3440", "#8a8f99", "#1f6fb4", "#c2571a", "#3a8f5c"
WORDS = {
    "batch": "transitions in a batch",
    "hidden": "width of two hidden layers",
    "horizon": "horizon",
    "objectives": "objectives",
    "members": "policies together",
    "steps": "stored transitions",
}


def main() -> None:
    plt = pyplot()
    plt.rcParams.update({"font.size": 9, "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": GREY})
    plt.rcParams.update({"xtick.color": INK, "ytick.color": INK, "axes.spines.top": False})
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    figure, axes = plt.subplots(2, 4, figsize=(12, 5.4), layout="constrained")
    panels = list(axes.flat)
    for panel, (name, rows) in zip(panels, found["growth"].items(), strict=False):
        draw_growth(panel, name, rows)
    draw_memory(panels[6], found["growth"]["steps"])
    draw_roofline(panels[7], found)
    figure.savefig(FIGURES / "speed.png", dpi=150)


def draw_growth(axes: Any, name: str, rows: list[dict[str, Any]]) -> None:
    """Policy-steps per second, and seconds of compiling."""
    x = [row[name] for row in rows]
    axes.plot(
        x, [row["policy_steps"] for row in rows], "o-", color=SPEED, ms=4, label="policy-steps per second"
    )
    axes.plot(
        x, [row["compile_seconds"] for row in rows], "s--", color=COMPILING, ms=3.5, label="s to compile"
    )
    axes.set(xscale="log", yscale="log", xlabel=WORDS[name])
    axes.set_xticks(x, [f"{value:,}" for value in x])
    axes.minorticks_off()
    if name == "batch":
        axes.legend(frameon=False, fontsize=8)


def draw_memory(axes: Any, rows: list[dict[str, Any]]) -> None:
    x = [row["steps"] for row in rows]
    axes.plot(x, [row["peak_mib"] for row in rows], "o-", color=MEMORY, ms=4, label="peak of the process")
    axes.plot(x, [row["data_mib"] for row in rows], "s--", color=INK, ms=3.5, label="the data itself")
    axes.set(xscale="log", yscale="log", xlabel=WORDS["steps"], ylabel="MiB")
    axes.legend(frameon=False, fontsize=8)


def draw_roofline(axes: Any, found: dict[str, Any]) -> None:
    """Operations per second against operations per byte that must be moved."""
    peak, stream = found["roofline"]["peak_gflops"], found["roofline"]["stream_gbytes"]
    rows = [row for name in ("batch", "hidden", "members") for row in found["growth"][name]]
    points = [(row["gflops"] / row["gbytes"], row["gflops"]) for row in rows]
    ends = [min(x for x, _ in points) / 2, max(x for x, _ in points) * 2]
    line = sorted(x for x in (*ends, peak / stream) if ends[0] <= x <= ends[1])
    axes.plot(line, [min(peak, stream * x) for x in line], color=GREY, label="measured limit")
    axes.scatter(*zip(*points, strict=True), s=16, color=SPEED, zorder=3, label="updates")
    axes.set(xscale="log", yscale="log", xlabel="operations per byte", ylabel="GFLOP/s")
    axes.legend(frameon=False, fontsize=8)


if __name__ == "__main__":
    main()
