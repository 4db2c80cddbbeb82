"""The strangers: optima that can be checked by hand, the split, gaps, and what the report makes of them."""

import importlib.util
import itertools
import json

import numpy as np
import pytest
from support.untrained import untrained

from aetdice import TrainingConfig, bsr, enumerate_space, solve
from aetdice.cli import main
from aetdice.learning.table import arrow_table
from aetdice.studies import STUDIES
from aetdice.studies.members import member_rows
from aetdice.studies.populations import parts_of
from aetdice.studies.running import complete
from aetdice.studies.strangers import suite
from aetdice.studies.strangers.chance import random_momdp
from aetdice.studies.strangers.finite import finite_problem
from aetdice.studies.strangers.mazes import FARTHEST, NEAREST, draw_map
from aetdice.studies.strangers.problem import (
    ALPHAS,
    DEVELOPMENT,
    HELD_BACK,
    LOOKED_AT,
    fair_objectives,
    half_of,
)
from aetdice.studies.strangers.report import CLASSES, confusion, kind_of, members, overview
from aetdice.studies.strangers.suite import FULL, closed, part_of, problems
from aetdice.studies.strangers.taxis import Layout, draw_layout
from aetdice.studies.study import Study

ESR = bsr(0.0)


def test_the_split_is_fixed_by_the_name_alone():
    assert half_of("taxi-0") == half_of("hopper") == DEVELOPMENT
    assert half_of("taxi-1") == half_of("swimmer") == LOOKED_AT
    assert half_of("maze-18") == half_of("maze-20") == HELD_BACK


def test_every_problem_has_its_own_name_and_every_family_is_in_both_halves():
    full, quick = (parts_of(STUDIES["strangers"](short)) for short in (False, True))
    names = [part.name for part in full]
    assert len(set(names)) == len(names) == len(problems()) < 80
    assert [part.name for part in quick] == names
    assert {tuple(part.facts["seeds"]) for part in quick} == {(0,)}
    development = {each.family for each in problems() if each.half == DEVELOPMENT}
    assert development == {each.family for each in problems() if each.half != DEVELOPMENT}


def test_what_a_part_depends_on_fits_into_a_file():
    for problem in problems():
        facts = part_of(problem, FULL).facts
        assert json.loads(json.dumps(facts))["half"] == problem.half


def test_the_command_line_lists_the_parts(capsys):
    main(["reproduce", "strangers", "--quick", "--list"])
    listed = capsys.readouterr().out.split()
    assert {"development-taxi-0", "looked-at-taxi-1", "looked-at-taxi-18"} <= set(listed)


# Layouts.


@pytest.mark.parametrize("seed", range(5))
def test_maps_are_solvable_and_neither_crowded_nor_wide(seed):
    rows = draw_map(3, 4, 2, seed).split(" / ")
    free = {(r, c): mark for r, row in enumerate(rows) for c, mark in enumerate(row) if mark != "#"}
    places = {mark: cell for cell, mark in free.items() if mark != "."}
    assert set(places) == {"S", "A", "B"}
    for one, other in itertools.permutations(places.values(), 2):
        reached, steps = {one}, 0
        while other not in reached:
            reached |= {
                (r + a, c + b) for r, c in reached for a, b in ((0, 1), (1, 0), (0, -1), (-1, 0))
            } & set(free)
            steps += 1
            assert steps <= FARTHEST
        assert steps >= NEAREST


def test_a_taxi_layout_has_cells_of_its_own_for_everything():
    layout = draw_layout(Layout(4, 3, 24), 7)
    cells = [*layout["origins"], *layout["destinations"], layout["start"]]
    assert len(set(cells)) == 7
    assert layout == draw_layout(Layout(4, 3, 24), 7)


# Gaps and what the report makes of them.


def test_a_gap_is_closed_from_the_twin_to_the_reference():
    assert closed(3.0, 1.0, 5.0) == 0.5
    assert closed(0.0, 1.0, 5.0) == -0.25
    assert closed(5.0, 4.999, 5.0) is None
    assert closed(5.0, 5.1, 5.0) is None


def cell(gap, trusted, score=1.0, data=0.0, objective="ESR", seed=0):
    words = "fine" if trusted else "NOT fine"
    scores = {"score": score, "twin": -1.0, "data": data, "best": 2.0}
    return {
        "objective": objective, "seed": seed, "gap": gap, "gap_from_data": 0.7, "trusted": trusted,
        "verdict": words, **scores,
    }  # fmt: skip


def test_what_is_below_the_data_is_lost_whatever_the_gap():
    assert kind_of(cell(0.95, True)) == CLASSES[0]
    assert kind_of(cell(0.7, True)) == CLASSES[1]
    assert kind_of(cell(0.49, True)) == CLASSES[2]
    assert kind_of(cell(0.95, True, score=-0.1)) == CLASSES[2]
    assert kind_of(cell(None, True)) is None


CELLS = [
    cell(0.97, True), cell(0.99, True, objective="BSR 0.5"), cell(0.93, False, objective="SER"),
    cell(0.55, True, seed=1), cell(0.3, True, objective="BSR 0.5", seed=1),
    cell(0.2, False, objective="SER", seed=1), cell(None, True, seed=2),
]  # fmt: skip


def test_the_confusion_table_counts_verdicts_by_what_was_closed():
    counts = confusion(CELLS)
    assert [counts[True, kind] for kind in CLASSES] == [2, 1, 1]
    assert [counts[False, kind] for kind in CLASSES] == [1, 0, 1]


def test_the_report_shows_medians_verdicts_and_what_was_wrong(shown, tmp_path):
    study = STUDIES["strangers"](True)
    name = study.parts[0].name
    found = {"problem": "taxi-0", "family": "Fair-Taxi", "half": DEVELOPMENT, "seconds": 61.4, "cells": CELLS}
    text = shown(study, {name: found}, tmp_path)
    assert "taxi-0 │ development │ 76 % ✓✓✓ │ 64 % ✓✓ │ 57 % ✗✗ │ 61 s" in text
    assert "trusted │ 2 │ 1 │ 1" in text
    assert "not trusted │ 1 │ 0 │ 1" in text
    assert "right │ 67 % │ │ 50 %" in text
    page = (tmp_path / "tables.md").read_text()
    assert "| right | 67 % |  | 50 % |" in page
    wrong = page[page.index("Wrong verdicts") :]
    assert [line.split(" | ")[0] for line in wrong.splitlines()[4:]] == [
        "| taxi-0, SER, seed 0", "| taxi-0, ESR, seed 1", "| taxi-0, BSR 0.5, seed 1",
    ]  # fmt: skip
    assert json.loads((tmp_path / "summary.json").read_text())["probes"][name]["seconds"] == 61.4


def test_nothing_done_shows_nothing():
    assert overview({}) == ([], [], "")


def test_what_cannot_be_done_here_is_left_out_and_said(monkeypatch, shown, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda module: None if module == "mujoco" else module)
    study = STUDIES["strangers"](True)
    assert "development-hopper" not in [part.name for part in study.parts]
    bodies = "hopper, swimmer, hopper-expert, swimmer-expert, halfcheetah-expert"
    words = f"Left out: {bodies}; they need pip install 'aetdice[mujoco]'."
    assert words in shown(study, {}, tmp_path)
    assert words in (tmp_path / "tables.md").read_text()


# One problem, from its data to its cells.


def stub(dataset, objectives, *, seed, out, progress):
    config = TrainingConfig().adapted({"network.hidden": (4,), "network.fourier": 2})
    del out, progress
    horizon = int(dataset.lengths.max())
    return untrained(dataset, objectives, algorithm="aetdice", horizon=horizon, seed=seed, config=config)


def test_a_policy_that_is_its_own_twin_closes_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(suite, "train", stub)
    made = random_momdp(np.random.default_rng(2), 3, 2, 3)
    problem = finite_problem("tiny", "random MOMDP", fair_objectives(), lambda: made, {"size": 3}, "random")
    effort = suite.Effort((4, 5), 0.02)
    found = complete([part_of(problem, effort)], tmp_path)[problem.part]
    cells = found["cells"]
    assert [(c["objective"], c["seed"]) for c in cells] == list(itertools.product(ALPHAS, (4, 5)))
    space = enumerate_space(made)
    for each in cells:
        assert each["gap"] == 0
        assert each["best"] == pytest.approx(solve(space, bsr(ALPHAS[each["objective"]]), check=False).value)
        assert each["score"] < each["best"]
        assert each["recorded"] >= each["data"]
    study = Study("strangers", (), members=members)
    rows = arrow_table(member_rows(study, {problem.part: found}, tmp_path)).to_pylist()
    assert [(row["objective"], row["seed"]) for row in rows] == [(c["objective"], c["seed"]) for c in cells]
    assert [(row["score"], row["twin_score"]) for row in rows] == [(c["score"], c["twin"]) for c in cells]
    assert {(row["dataset"], row["algorithm"], row["selected"]) for row in rows} == {
        ("tiny", "aetdice", True)
    }
    assert {row["seconds"] > 0 for row in rows} == {True}
