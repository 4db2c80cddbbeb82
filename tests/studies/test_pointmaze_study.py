"""The MO-PointMaze study from end to end, with networks far too small to learn anything."""

import json
from dataclasses import replace

import pytest
from rich.console import Console

from aetdice.config import TrainingConfig
from aetdice.studies.parts import complete
from aetdice.studies.pointmaze import PLANS, parts_of, report

TINY = replace(
    PLANS["pointmaze-2obj"][1],
    betas=(1.0, 0.3),
    episodes=6,
    dataset=20,
    baseline_steps=20,
    step=100,
    config=TrainingConfig(
        hidden=(4,), batch=8, value_steps=20, cloning_steps=20, chunk=20, holdout=0.1, waves=2, frequencies=2
    ),
    arms=(2,),
)


OTHERS = ["aetdice-linear", "optidice", "fairdice", "esr-iql", "endowed", "goals-2"]


@pytest.mark.parametrize("names", [["reference", "aetdice"], pytest.param(OTHERS, marks=pytest.mark.slow)])
def test_parts_are_trained_measured_and_shown(names, tmp_path):
    results = complete(parts_of(TINY), tmp_path, names)
    assert list(results) == names
    console = Console(width=200, record=True, quiet=True)
    console.print(report(results, TINY.maze, tmp_path))
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert set(summary["made"]) == set(names)
    assert '"returns"' not in json.dumps(summary["rows"])
    for row in (row for part in results.values() for row in part.get("rows", {}).values()):
        chosen = row["settings"][row["selected"]]["seeds"][0]
        assert chosen["episodes"] == 6
        assert len(chosen["returns"]) == 6
        assert chosen["scores"]["trained"]["low"] <= chosen["scores"]["trained"]["high"]
    if "endowed" in results:
        cases = results["endowed"]["cases"]
        assert [case["endowment"] for case in cases][:3] == [[0.0, 0.0], [40.0, 0.0], [0.0, 20.0]]
        for seed in cases[0]["seeds"]:  # nothing accrued is the plain start
            assert seed["score"] == pytest.approx(seed["untold"], abs=1e-5)
        assert all(case["best"] >= cases[0]["best"] for case in cases)
