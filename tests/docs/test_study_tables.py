"""The tables of the MuJoCo studies are those of the kept results."""

import json

import numpy as np
import pytest
from support.pages import ROOT, text_of

from aetdice.studies.score_tables import markdown


@pytest.mark.parametrize("study", ["ant", "walker2d", "cobb-douglas"])
def test_tables_are_those_of_the_kept_results(study):
    page = text_of("docs/mujoco-study.md")
    kept = json.loads((ROOT / "experiments" / "results" / f"{study}.json").read_text(encoding="utf-8"))
    tables = [markdown(table) for table in kept["tables"].values() if table["rows"]]
    assert tables
    assert [table for table in tables if table not in page] == []


OWN = {
    "fair_taxi": ("fair-taxi", ("ESR", "BSR 0.5", "SER"), "sd", 3),
    "pointmaze-2obj": ("pointmaze-2obj", ("AETDICE ESR", "AETDICE BSR 0.5", "AETDICE SER"), "half", 2),
    "pointmaze-3obj": ("pointmaze-3obj", ("AETDICE ESR", "AETDICE BSR 0.5", "AETDICE SER"), "half", 2),
}


@pytest.mark.parametrize("study", OWN)
def test_results_in_the_readme_are_the_kept_ones(study):
    name, rows, spread, digits = OWN[study]
    kept = json.loads((ROOT / "experiments" / "results" / f"{study}.json").read_text(encoding="utf-8"))
    found = kept["tables"][name]["rows"]
    readme = text_of("README.md")
    for row in rows:
        score = found[row]["settings"][found[row]["shown"]]["trained"]
        shown = f"{score['mean']:.{digits}f} ± {score[spread]:.{digits}f}".replace("± 0.", "± .")
        assert f"| {shown} |" in readme, (row, shown)


def test_ablation_is_the_kept_one():
    kept = json.loads((ROOT / "experiments" / "results" / "ablation.json").read_text(encoding="utf-8"))
    page = text_of("docs/appendix/ablations.md")
    for name, variant in kept["variants"].items():
        shares = [np.array(variant[objective]["gap_share"]) for objective in ("ESR", "BSR 0.5", "SER")]
        cells = (f"{100 * share.mean():.1f} ± {100 * share.std(ddof=1):.1f} %" for share in shares)
        assert " | ".join(cells) in page, name


def test_dispatch_figures_are_the_kept_ones():
    kept = json.loads((ROOT / "experiments" / "results" / "dispatch.json").read_text(encoding="utf-8"))
    page = text_of("docs/dispatch.md")
    shares = []
    for row in kept["rows"]:
        scores = (row["dispatchers"], row["twin"], row["policy"])
        cells = [f"{score['J']:.2f} ({score['low']:.2f} to {score['high']:.2f})" for score in scores]
        cells += [f"{row['claimed']:.2f}", f"{row['best']:.2f}"]
        line = f"| {row['objective']} | {row['seed']} | {' | '.join(cells)} |"
        assert line in page
        assert row["beats"] == (row["policy"]["low"] > row["dispatchers"]["high"])
        twin, best = row["twin"]["exact"], row["best"]
        shares.append((row["policy"]["exact"] - twin) / (best - twin))
    assert f"{min(shares):.0%} to {max(shares):.0%} of the way" in " ".join(page.split())
