"""Estimates of J from a log alone, against the truth: coverage, width, support and selection by them.

    python experiments/estimation.py --out RESULT.json [--families momdp taxi mo-gym dispatch maze …]
    python experiments/estimation.py --out RESULT.json --figure PICTURE.png

A policy is learned from nine tenths of a dataset and estimated from the tenth that was kept. Truth is exact
where the problem can be enumerated, else the mean of sampled episodes. A run that was cut off goes on; rows
say which code measured them.
"""

import argparse
import datetime
import itertools
import json
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
from estimation_cases import FAMILIES, KEPT, Case

from aetdice.estimation import estimate
from aetdice.files import versions, write_json
from aetdice.learning.comparison import Offer, recommend
from aetdice.studies.parts import code_commit

CLONED = ("twin", "behaviour")
"""Policies that stand for the log's own behaviour."""
LEAST_GAP = 1e-6
"""Where the behaviour is optimal, nothing has a share of the gap."""


def measured(case: Case, turn: int) -> dict[str, Any]:
    began = time.perf_counter()
    found = estimate(
        case.acting, case.log, case.objective, twin=case.behaviour, seen=case.seen, horizon=case.horizon
    )
    seconds, truth = time.perf_counter() - began, case.truth()
    record = compact(found.record())
    return {
        "round": turn,
        "family": case.family,
        "problem": case.problem,
        "policy": case.policy,
        "objective": case.label,
        "truth": truth,
        "gap": case.gap(),
        "covered": found.interval.low <= truth <= found.interval.high,
        "word": found.support.word,
        "seconds": seconds,
        "estimate": record,
        "logged": found.logged._asdict(),
        "commit": code_commit(),
    }


def compact(record: dict[str, Any]) -> dict[str, Any]:
    """What is looked at afterwards."""
    names = ("value", "low", "high", "disagreement", "model_error", "improvement")
    heard = {name: each["value"] for name, each in record["estimators"].items() if each["heard"]}
    support = {name: record["support"][name] for name in ("unknown", "thin", "effective_episodes")}
    return {**{name: record[name] for name in names}, "support": support, "heard": heard}


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Coverage of what is called supported, share called so, and what is far off, by family and in all."""

    def told(some: list[dict[str, Any]]) -> dict[str, Any]:
        supported = [row for row in some if row["word"] == "supported"]
        half = [(row["estimate"]["high"] - row["estimate"]["low"]) / 2 for row in some]
        off = [
            row
            for row, width in zip(some, half, strict=True)
            if abs(row["estimate"]["value"] - row["truth"]) > 2 * width
        ]
        widths = [
            width / row["gap"]
            for row, width in zip(some, half, strict=True)
            if row["word"] == "supported" and row["gap"] > LEAST_GAP
        ]
        return {
            "pairs": len(some),
            "supported": len(supported) / len(some),
            "covered_of_supported": float(np.mean([r["covered"] for r in supported])) if supported else None,
            "covered": float(np.mean([row["covered"] for row in some])),
            "off_by_two": len(off),
            "off_by_two_supported": sum(row["word"] == "supported" for row in off),
            "median_half_of_gap": float(np.median(widths)) if widths else None,
            "median_seconds": float(np.median([row["seconds"] for row in some])),
        }

    families = sorted({row["family"] for row in rows})
    found = {"all": told(rows)} | {f: told([r for r in rows if r["family"] == f]) for f in families}
    for family in families:
        found[family]["selection"] = selection([r for r in rows if r["family"] == family])
    return found


def selection(rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    """What taking the largest lower bound costs, beside the best policy that was there, in shares of the gap.

    Only where cloning was among the policies: it is what is recommended where nothing beats it.
    """
    regrets, below, cloned = [], 0, 0
    key = lambda row: (row["problem"], row["objective"])  # noqa: E731
    for _, some in itertools.groupby(sorted(rows, key=key), key=key):
        group = list(some)
        twin = next((row for row in group if row["policy"] in CLONED), None)
        others = [row for row in group if row["policy"] not in CLONED]
        if twin is None or not others or twin["gap"] <= LEAST_GAP:
            continue
        offers = [Offer(r["policy"], r["estimate"]["value"], r["estimate"]["low"], r["word"]) for r in others]
        chosen = recommend(offers, twin["estimate"]["value"]).chosen
        taken = twin if chosen is None else others[chosen]
        best = max(row["truth"] for row in group)
        regrets.append((best - taken["truth"]) / twin["gap"])
        half = (taken["estimate"]["high"] - taken["estimate"]["low"]) / 2
        below, cloned = below + int(taken["truth"] < twin["truth"] - half), cloned + int(chosen is None)
    if not regrets:
        return None
    return {
        "datasets": len(regrets),
        "median_regret": float(np.median(regrets)),
        "largest_regret": float(np.max(regrets)),
        "below_cloning": below,
        "cloning_taken": cloned,
    }


WORDS = {"supported": "tab:blue", "extrapolating": "tab:orange", "do not trust": "tab:red"}


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Estimate against truth, a panel for each family; later rounds have hollow points."""
    import matplotlib.pyplot as plt

    families = sorted({row["family"] for row in rows})
    columns = 4
    lines = -(-len(families) // columns)
    figure, grid = plt.subplots(lines, columns, figsize=(3.1 * columns, 3.1 * lines), squeeze=False)
    axes = grid.ravel()
    for ax in axes[len(families) :]:
        ax.set_axis_off()
    for ax, family in zip(axes, families, strict=False):
        for word, colour in WORDS.items():
            some = [row for row in rows if (row["family"], row["word"]) == (family, word)]
            truth = [row["truth"] for row in some]
            value = [row["estimate"]["value"] for row in some]
            bars = [[v - row["estimate"]["low"] for v, row in zip(value, some, strict=True)],
                    [row["estimate"]["high"] - v for v, row in zip(value, some, strict=True)]]  # fmt: skip
            ax.errorbar(truth, value, bars, fmt="none", lw=0.8, color=colour, alpha=0.7)
            later = np.array([row["round"] > 1 for row in some], bool)
            ax.plot(*np.array([truth, value])[:, ~later], "o", ms=3, color=colour, label=word, alpha=0.7)
            ax.plot(*np.array([truth, value])[:, later], "o", ms=4, mfc="white", color=colour, alpha=0.7)
        ends = [row["truth"] for row in rows if row["family"] == family]
        ax.axline((min(ends), min(ends)), slope=1, color="grey", lw=0.8)
        ax.set(title=family, xlabel="true J", ylabel="estimate" if ax in grid[:, 0] else "")
    axes[0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def write_result(path: Path, rows: list[dict[str, Any]]) -> None:
    result = {
        "level": 0.9,
        "kept": KEPT,
        "summary": summary(rows),
        "rounds": {str(n): summary([r for r in rows if r["round"] == n]) for n in {r["round"] for r in rows}},
        "rows": rows,
        "command": "python experiments/estimation.py --out RESULT.json",
        "commits": sorted({row["commit"] for row in rows}),
        "date": datetime.date.today().isoformat(),
        "device": jax.devices()[0].device_kind,
        "versions": versions(),
    }
    write_json(path, result)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--families", nargs="+", default=list(FAMILIES))
    parser.add_argument(
        "--numbers", type=int, nargs="+", help="of the problems in each family; by default all"
    )
    parser.add_argument("--add", type=Path, nargs="+", default=[], help="results of other families to add")
    parser.add_argument(
        "--round", type=int, default=1, help="a later one has problems never looked at before"
    )
    parser.add_argument("--figure", type=Path, help="draw the results that there are")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    if arguments.out.is_file():
        rows = json.loads(arguments.out.read_text(encoding="utf-8"))["rows"]
    if arguments.add:
        for path in arguments.add:
            added = json.loads(path.read_text(encoding="utf-8"))["rows"]
            rows += [{**row, "round": arguments.round} for row in added]
        write_result(arguments.out, rows)
        return
    if arguments.figure is not None:
        draw(rows, arguments.figure)
        return
    done = {(row["family"], row["problem"], row["policy"], row["objective"]) for row in rows}
    for family in arguments.families:
        make, usual = FAMILIES[family]
        for case in make(arguments.numbers or range(usual)):
            if (case.family, case.problem, case.policy, case.label) in done:
                continue
            rows.append(measured(case, arguments.round))
            row = rows[-1]
            print(
                f"{row['family']} {row['problem']} {row['policy']} {row['objective']}: "
                f"{row['estimate']['value']:.3f} ({row['estimate']['low']:.3f} to "
                f"{row['estimate']['high']:.3f}), truth {row['truth']:.3f}, {row['word']}, "
                f"unknown {row['estimate']['support']['unknown']:.3f}, "
                f"rests on {row['estimate']['support']['effective_episodes']:.0f}, {row['seconds']:.1f} s",
                flush=True,
            )
            write_result(arguments.out, rows)


if __name__ == "__main__":
    main()
