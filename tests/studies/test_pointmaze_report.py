"""Tables and figures of the MO-PointMaze study, from results that were made up."""

import io
import json

import numpy as np
import pytest
from rich.console import Console

from aetdice.studies.estimates import Estimate, estimate, leaders, tied
from aetdice.studies.pointmaze import merge, report
from aetdice.studies.pointmaze.merge import column_of, trained_for
from aetdice.studies.pointmaze.paper import COLUMNS, PAPER
from aetdice.studies.pointmaze.parts import parts_of
from aetdice.studies.pointmaze.plan import PLANS, WEIGHTS
from aetdice.studies.pointmaze.words import route

MAZES = {"pointmaze-2obj": 2, "pointmaze-3obj": 3}


def seed_of(value: float, goals: int, seed: int) -> dict:
    """A policy that scores `value` (plus a little by seed) under everything."""
    scores = {
        name: {"value": value + seed / 100, "low": value - 0.1, "high": value + 0.1} for name in names()
    }
    return {
        "seed": seed,
        "episodes": 5,
        "scores": scores,
        "mean_returns": [value] * goals,
        "variances": [1.0] * goals,
        "quantiles": np.tile(np.linspace(0, value, 51), (goals, 1)).tolist(),
        "returns": np.random.default_rng(seed).uniform(1, 9, (5, goals)).tolist(),
        "twin": 1.0,
        "diagnostics": {"claimed_value": value + 1, "held_out_claimed_value": value, "flow_violation": 0.1},
    }


def names() -> list[str]:
    return [*COLUMNS.values(), "trained"]


def population(rows: dict[str, float], goals: int, params: list[dict]) -> dict:
    """Rows whose second setting is better by one half; the first one was selected."""
    return {
        "rows": {
            row: {
                "objective": row,
                "data_score": 0.5,
                "settings": [
                    {"params": p, "seeds": [seed_of(value + i / 2, goals, seed) for seed in range(3)]}
                    for i, p in enumerate(params)
                ],
                "selected": 0,
                "rule": "the rule",
                "best": len(params) - 1,
            }
            for row, value in rows.items()
        },
        "twins": [seed_of(1.0, goals, seed) for seed in range(3)],
        "seconds": 1.0,
    }


def made_up(maze: str) -> dict[str, dict]:
    goals, weights = MAZES[maze], WEIGHTS[maze]
    betas = [{"algorithm": "aetdice", "beta": beta, "learning_rate": 1e-3} for beta in (1e-2, 1e-3)]
    mixture = [
        {"probability": 1.0, "goals": ["goalA", "goalB"], "switch_times": [7], "returns": [3.0] * goals}
    ]
    best = {"objective": "", "value": 9.0, "scores": dict.fromkeys(COLUMNS.values(), 9.0), "mixture": mixture}
    reference = {
        "schedules": dict.fromkeys([*COLUMNS.values(), *weights], best),
        "driven": 12,
        "objectives": [f"goal{letter}" for letter in "ABC"[:goals]],
        "data": {"returns": np.random.default_rng(0).uniform(1, 9, (40, goals)).tolist(), "scores": {}},
    }
    case = {
        "endowment": [20.0] * goals,
        "best": 9.0,
        "best_gains": [1.0] * goals,
        "schedule": mixture,
        "seeds": [{"score": 5.0, "untold": 4.0, "twin": 1.0, "gains": [2.0] * goals}],
    }
    stars = {**population({"ESR": 5.0, "SER": 3.0}, goals, betas[:1]), "best": {"ESR": 9.0, "SER": 9.0}}
    iql = [{"algorithm": "esr-iql", "expectile": 0.85, "temperature": t} for t in (14.0, 10.0)]
    return {
        "reference": reference,
        "aetdice": population({"AETDICE ESR": 7.0, "AETDICE BSR 0.5": 5.0, "AETDICE SER": 5.0}, goals, betas),
        "optidice": population({f"OptiDICE {name}": 4.0 for name in weights}, goals, betas[:1]),
        "esr-iql": population({"ESR-IQL": 6.0}, goals, iql),
        "endowed": {"objectives": [], "cases": [case]},
        "goals-2": stars,
        "goals-3": stars,
    }


def shown(results: dict, maze: str, folder) -> str:
    console = Console(width=240, record=True, file=io.StringIO())
    console.print(report(results, maze, folder))
    return console.export_text()


@pytest.mark.parametrize("maze", MAZES)
def test_tables_and_figures_render(maze, tmp_path):
    text = shown(made_up(maze), maze, tmp_path)
    assert f"{maze}, settings chosen without the environment" in text
    assert "ESR: best or tied: AETDICE ESR" in text
    assert "LSR: NOT won by a row trained for it" in text
    assert "75% (75%, 75%, 75%)" in text  # (7 - 1) / (9 - 1), and one hundredth by seed
    assert "6.67" in text or maze != "pointmaze-2obj"
    for figure in ("data", "returns", "quantiles", "betas", "goals"):
        assert (tmp_path / f"{figure}.png").stat().st_size > 5000
        assert json.loads((tmp_path / f"{figure}.json").read_text())


@pytest.mark.parametrize("missing", ["reference", "aetdice", "optidice", "endowed", "goals-2"])
def test_parts_may_be_missing(missing, tmp_path):
    results = made_up("pointmaze-2obj")
    del results[missing]
    assert "figures and their data" in shown(results, "pointmaze-2obj", tmp_path)


def test_nothing_at_all_is_shown_too(tmp_path):
    assert "figures and their data" in shown({}, "pointmaze-2obj", tmp_path)


def test_figures_data_is_what_the_parts_hold(tmp_path):
    results = made_up("pointmaze-2obj")
    shown(results, "pointmaze-2obj", tmp_path)
    episodes = json.loads((tmp_path / "returns.json").read_text())["episodes"]
    seeds = results["esr-iql"]["rows"]["ESR-IQL"]["settings"][0]["seeds"]
    assert episodes["ESR-IQL"] == [episode for seed in seeds for episode in seed["returns"]]
    curve = json.loads((tmp_path / "betas.json").read_text())["curves"]["AETDICE ESR"]
    assert curve["beta"] == [1e-2, 1e-3]
    assert curve["score"] == pytest.approx([7.01, 7.51])
    assert curve["claimed"] == pytest.approx([8.0, 8.5])


def test_cloning_comes_from_the_twins():
    rows = merge(made_up("pointmaze-2obj"), "pointmaze-2obj")["rows"]
    assert list(rows)[-2:] == ["cloning", "cloning, state only"]
    assert rows["cloning"]["settings"][0]["scores"]["ESR"]["mean"] == pytest.approx(1.01)


@pytest.mark.parametrize("maze", MAZES)
def test_every_row_of_the_paper_is_trained_and_has_a_reference(maze):
    for plan in PLANS[maze]:
        trained = {row for part in parts_of(plan) for row in part.facts.get("rows", {})}
        assert set(PAPER[maze]) <= trained
        references = {*COLUMNS.values(), *WEIGHTS[maze]}
        assert {trained_for(row) for row in trained} <= references
        assert {column_of(row) for row in trained} == set(COLUMNS)
        names = [part.name for part in parts_of(plan)]
        assert len(set(names)) == len(names)


def test_seeds_that_agree_by_chance_keep_the_noise_of_their_episodes():
    close = estimate([{"value": 1.0, "low": 0.9, "high": 1.1}] * 3)
    assert close.half == pytest.approx(0.1 / np.sqrt(3), rel=1e-6)
    apart = estimate([{"value": v, "low": v, "high": v} for v in (0.0, 1.0, 2.0)])
    assert apart.half == pytest.approx(4.302653 / np.sqrt(3), rel=1e-5)


def test_ties():
    best, near, far = Estimate(1.0, 0.1, None), Estimate(0.8, 0.1, None), Estimate(0.7, 0.1, None)
    assert tied(near, best)
    assert not tied(far, best)
    assert tied(Estimate(0.7, 0.1, 2.0), best)  # few seeds say less
    assert leaders({"a": best, "b": near, "c": far}) == {"a", "b"}
    assert leaders({}) == set()


def test_a_route_leaves_out_legs_of_no_length():
    assert route({"goals": ["A", "B", "C"], "switch_times": [0, 20]}, 50) == "B, at 20 C"
    assert route({"goals": ["A", "B"], "switch_times": [5]}, 50) == "A, at 5 B"
    assert route({"goals": ["A", "B"], "switch_times": [50]}, 50) == "A"
