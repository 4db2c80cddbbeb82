"""The MO-PointMaze studies, mostly with policies that were never trained."""

import dataclasses
import json

import numpy as np
import pytest

from aetdice.envs.point_maze.schedules import drive_all
from aetdice.exact.mixtures import best_mixture
from aetdice.studies import coverage, point_maze
from aetdice.studies.maze_figures import draw_ablation
from aetdice.studies.merging import merge, merge_table
from aetdice.studies.paper import POINT_MAZE, REGIMES
from aetdice.studies.populations import parts_of
from aetdice.studies.running import complete
from aetdice.studies.score_tables import setting

POPULATIONS = ["aetdice", "aetdice-linear", "optidice", "fairdice", "esr-iql", "n-from-data", "episodes"]


def coarse(maze, objectives, targets, step):
    """In place of the search, which tests/oracles/test_schedules.py examines: nothing is refined."""
    known = drive_all(maze, targets, step)
    return known, {name: best_mixture(objective, known.returns) for name, objective in objectives.items()}


@pytest.fixture
def study(tiny, monkeypatch):
    monkeypatch.setattr(point_maze, "search", coarse)
    return coverage.study_of("pointmaze-2obj", tiny(point_maze.QUICK, episodes=6, dataset=20), 100)


@pytest.fixture
def with_stars(tiny, monkeypatch):
    monkeypatch.setattr(point_maze, "search", coarse)
    effort = tiny(point_maze.QUICK, episodes=6, dataset=20)
    return coverage.study_of("pointmaze-2obj", effort, 100, (2, 3))


@pytest.mark.slow
def test_stars_are_tables_of_their_own(with_stars, without_training, shown, tmp_path):
    names = [f"star-{arms}-{part}" for arms in (2, 3) for part in ("reference", "aetdice")]
    results = complete(parts_of(with_stars), tmp_path, names)
    assert list(results) == names
    assert "star-3 (the paper's)" in shown(with_stars, results, tmp_path)
    lines = json.loads((tmp_path / "stars.json").read_text())
    assert {name: list(points) for name, points in lines.items()} == {"ESR": ["2", "3"], "SER": ["2", "3"]}
    assert (tmp_path / "stars.png").stat().st_size > 5000


def test_every_part_is_measured_merged_and_shown(study, without_training, shown, tmp_path):
    results = complete(parts_of(study), tmp_path)
    text = shown(study, results, tmp_path)
    for words in ("pointmaze-2obj (the paper's)", "the best schedules", "accrued at the start"):
        assert words in text
    for figure in ("data", "returns", "quantiles", "betas"):
        assert (tmp_path / f"{figure}.png").stat().st_size > 5000
        assert json.loads((tmp_path / f"{figure}.json").read_text())
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert set(summary["made"]) == set(results)
    assert set(summary["tables"]) == {"pointmaze-2obj"}
    merged = merge(study, results)["tables"]["pointmaze-2obj"]
    assert list(merged["rows"])[-2:] == ["cloning", "cloning, state only"]
    for name, row in merged["rows"].items():
        chosen = setting(row)
        assert set(chosen["scores"]) == set(REGIMES)
        assert len(chosen["samples"]["returns"]) == 6
        if "cloning" not in name:  # a policy that was not trained is its own twin
            assert chosen["gap_shares"] == pytest.approx([0.0], abs=1e-5)
    episodes = json.loads((tmp_path / "returns.json").read_text())["episodes"]
    assert episodes["ESR-IQL"] == setting(merged["rows"]["ESR-IQL"])["samples"]["returns"][::3]
    curve = json.loads((tmp_path / "betas.json").read_text())["curves"]["AETDICE ESR"]
    assert curve["beta"] == [1.0, 0.3]


def test_episodes_may_begin_with_reward_accrued(study, without_training, tmp_path):
    cases = complete(parts_of(study), tmp_path, ["initial-reward"])["initial-reward"]["cases"]
    assert [case["accrued"] for case in cases][:3] == [[0.0, 0.0], [40.0, 0.0], [0.0, 20.0]]
    for seed in cases[0]["seeds"]:  # nothing accrued is the plain start
        assert seed["score"] == pytest.approx(seed["not_told"], abs=1e-5)
    assert all(case["best"] >= cases[0]["best"] for case in cases)


@pytest.mark.parametrize("only", [["reference"], ["optidice"], ["initial-reward"]])
def test_parts_may_be_missing(only, study, without_training, shown, tmp_path):
    results = complete(parts_of(study), tmp_path, only)
    assert "figures and their data" in shown(study, results, tmp_path)


def test_only_settings_of_beta_are_drawn_against_beta(tmp_path):
    """Where n is chosen from the data, sample sizes may be tried instead."""
    sizes = [{"params": {"sample_size": size}} for size in (0.005, 0.03)]
    row = {"algorithm": "aetdice", "column": "ESR", "settings": sizes}
    draw_ablation({"rows": {"AETDICE ESR, n from the data": row}}, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_parts_are_trained(study, tmp_path):
    results = complete(parts_of(study), tmp_path)
    rows = merge_table(study.tables[0], results)["rows"]
    assert all(np.isfinite(setting(row)["scores"]["ESR"]["mean"]) for row in rows.values())
    assert setting(rows["AETDICE ESR"])["twin"] != setting(rows["AETDICE ESR"])["trained"]["mean"]


@pytest.mark.parametrize("maze", POINT_MAZE)
@pytest.mark.parametrize("quick", [False, True])
def test_every_row_of_the_paper_is_trained_and_every_row_has_a_reference(maze, quick):
    study = coverage.study(maze, quick)
    main = study.tables[0]
    assert [population.name for population in main.populations] == POPULATIONS
    rows = [row for population in main.populations for row in population.rows]
    assert set(POINT_MAZE[maze]) <= {row.name for row in rows}
    known = {point_maze.best_for(name) for name in (*REGIMES, *point_maze.WEIGHTS[maze])}
    assert {row.optimum for row in rows} == known - {point_maze.best_for("LSR")}
    assert {row.column for row in rows} == set(REGIMES)
    names = [part.name for part in parts_of(study)]
    assert len(set(names)) == len(names)


def test_settings_of_the_full_study():
    """AETDICE's as in the kept results; the other methods have them too, which they had not then."""
    main = coverage.study("pointmaze-3obj", False).tables[0]
    configs = {population.name: population.config for population in main.populations}
    assert (configs["aetdice"].dual.steps, configs["aetdice"].dual.batch) == (120_000, 2048)
    assert (configs["esr-iql"].iql.steps, configs["esr-iql"].iql.batch) == (120_000, 2048)
    assert configs["optidice"].dual.refit == configs["fairdice"].dual.refit == "layer"
    assert configs["aetdice-linear"].dual.refit == "constants"
    assert {config.extraction.batch for config in configs.values()} == {512}
    assert {config.network.value_fourier for config in configs.values()} == {6}
    assert {1e-3, 5e-4, 2e-4, 1e-4, 5e-5} < set(main.effort.grids["aetdice"]["beta"])


def test_a_star_has_as_many_objectives_as_arms(tiny):
    table = coverage.star_table(3, tiny(point_maze.QUICK, dataset=4))
    assert len(table.dataset(None).seen.objectives) == 3
    assert dataclasses.asdict(table.populations[0])["grid"] == {"beta": (1e-3,)}


def test_a_route_leaves_out_legs_of_no_length():
    route = point_maze.route
    assert route({"goals": ["A", "B", "C"], "switch_times": [0, 20]}, 50) == "B, at 20 C"
    assert route({"goals": ["A", "B"], "switch_times": [5]}, 50) == "A, at 5 B"
    assert route({"goals": ["A", "B"], "switch_times": [50]}, 50) == "A"
