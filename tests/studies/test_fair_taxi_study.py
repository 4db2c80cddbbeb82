"""The Fair-Taxi study from members to tables, on a taxi small enough for a test, and the demonstration."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest
from support.training import TINY
from rich.console import Console

from aetdice import bsr, demo, train
from aetdice.envs import FairTaxi
from aetdice.envs.fair_taxi.collection import collect_fair_taxi
from aetdice.exact import TabularMOMDP, enumerate_space, solve
from aetdice.studies import STUDIES, fair_taxi
from aetdice.studies.fair_taxi_report import report

ALPHAS = (0.0, 0.5, 1.0)
TAXI = FairTaxi(size=3, origins=((0, 0), (2, 2)), destinations=((0, 1), (2, 1)), start=(1, 1), horizon=12)


@pytest.fixture(scope="module")
def part():
    run = train(
        collect_fair_taxi(TAXI, 60),
        [bsr(alpha) for alpha in ALPHAS],
        beta=(0.1, 0.01),
        seed=(0, 1),
        config=replace(TINY, holdout=0.2),
    )
    space = enumerate_space(TabularMOMDP.from_environment(TAXI))
    return fair_taxi.measure(run, TAXI, space, ALPHAS, 50)


def rendered(renderable) -> str:
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(renderable)
    return console.export_text()


def test_every_objective_selects_its_own_setting(part):
    assert [summary["objective"].split(":")[0] for summary in part["by_objective"]] == [
        bsr(alpha).short_name for alpha in ALPHAS
    ]
    for i, summary in enumerate(part["by_objective"]):
        assert summary["selected"]["index"] // 4 == i
        assert summary["selected"]["params"]["objective"] == bsr(ALPHAS[i]).short_name
        assert summary["exact_score"] >= summary["score"] - 0.2  # sampled


def test_behaviours_are_shares_and_the_exact_ones_those_of_the_optimum(part):
    for alpha in ALPHAS:
        row = part["policies"][f"{alpha:g}"]
        assert len(row["seeds"]) == 2
        for found in (row["exact_shares"], *(seed["shares"] for seed in row["seeds"])):
            assert list(found) == list(fair_taxi.BEHAVIOURS)
            assert 0 <= sum(found.values()) <= 1 + 1e-9
        for seed in row["seeds"]:
            assert np.shape(seed["quantiles"]) == (2, len(fair_taxi.LEVELS))
            assert set(seed["probe"]) == {"served 3", "served 0"}
    space = enumerate_space(TabularMOMDP.from_environment(TAXI))
    outcomes = solve(space, bsr(0.5)).outcomes
    both = outcomes.probability(lambda r: r[0] > 0 and r[1] > 0)
    assert part["policies"]["0.5"]["exact_shares"]["both groups"] == pytest.approx(both)


def test_the_report_shows_the_parts_and_saves_what_it_draws(part, tmp_path):
    merged = fair_taxi.merge({"alphas-0": part, "terminal": part})
    text = rendered(report(merged, tmp_path))
    for words in ("gap closed", "trained for × evaluated under", "reward at the end", "who turns to group 1"):
        assert words in text
    assert text.count("BSR 0.5") >= 6
    for name in ("behaviours", "quantiles"):
        assert (tmp_path / f"{name}.png").stat().st_size > 5_000
    curves = json.loads((tmp_path / "quantiles.json").read_text())["curves"]
    mean = np.mean([seed["quantiles"] for seed in part["policies"]["0"]["seeds"]], axis=0)
    np.testing.assert_allclose(curves["ESR"], mean)


def test_a_study_that_has_only_begun_can_be_shown(part, tmp_path):
    study = STUDIES["fair-taxi"]
    assert "BSR 0.5" in rendered(study.show({"alphas-0": part}, tmp_path))
    assert [p.name for p in study.full()] == ["alphas-0", "alphas-1", "terminal"]


def test_shares_count_whom_an_episode_serves():
    returns = np.array([[1.0, 0.0], [2.0, 1.0], [0.0, 0.5], [-0.3, -0.2]])
    assert fair_taxi.shares(returns) == {"only group 0": 0.25, "both groups": 0.25, "only group 1": 0.25}


def test_demo_shows_learner_twin_and_optimum(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "SHORT", TINY)
    monkeypatch.setattr(demo, "FairTaxi", lambda: TAXI)
    monkeypatch.setattr(demo, "EPISODES", 50)
    console = Console(width=140, record=True, file=io.StringIO())
    demo.demo(tmp_path, console)
    text = console.export_text()
    assert "0.5 a1 + 0.5 a3" in text
    assert all(name in text for name in demo.ALPHAS)
    assert "shortened run" in text
    data = json.loads((tmp_path / "behaviours.json").read_text())
    assert list(data["behaviours"]) == list(demo.ALPHAS)
    assert (tmp_path / "behaviours.png").exists()
