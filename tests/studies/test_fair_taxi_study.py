"""The Fair-Taxi study from members to tables, on a taxi small enough for a test, and the demonstration."""

import dataclasses
import io
import json

import numpy as np
import pytest
from rich.console import Console
from support.training import TINY
from support.untrained import untrained

from aetdice import bsr, train
from aetdice.datasets import space_of
from aetdice.envs import FairTaxi
from aetdice.exact import solve
from aetdice.learning.setup import readable
from aetdice.page.study import record_of
from aetdice.studies import STUDIES, demo, fair_taxi
from aetdice.studies.merging import merge_table
from aetdice.studies.paper import FAIR_TAXI
from aetdice.studies.populations import parts_of
from aetdice.studies.reporting import told
from aetdice.studies.running import complete
from aetdice.studies.score_tables import setting
from aetdice.studies.study import FROM_DATA, WEIGHED, Study

LAYOUT = {
    "size": 3,
    "origins": ((0, 0), (2, 2)),
    "destinations": ((0, 1), (2, 1)),
    "start": (1, 1),
    "horizon": 12,
}


@pytest.fixture
def study(tiny):
    effort = tiny(fair_taxi.QUICK, seeds=(0, 1), episodes=50, dataset=60)
    return Study("fair-taxi", (fair_taxi.table_of(effort, ((0.0, 0.5, 1.0), (0.0,)), **LAYOUT),))


def test_every_part_is_measured_merged_and_shown(study, without_training, shown, tmp_path):
    results = complete(parts_of(study), tmp_path)
    text = shown(study, results, tmp_path)
    for words in ("gap closed", "fair-taxi (the paper's)", "whom an episode serves", "who turns to group 1?"):
        assert words in text
    rows = merge_table(study.tables[0], results)["rows"]
    main = ["ESR", "BSR 0.5", "SER"]
    more = [f"{name}{ending}" for ending in (FROM_DATA, WEIGHED) for name in main]
    others = ["ESR-IQL", "FairDICE", "OptiDICE [0.5, 0.5]"]
    assert list(rows) == [*main, "ESR, paid at the end", *more, *others, "cloning"]
    assert [row["column"] for row in rows.values()] == [*main, "ESR", *main, *main, "ESR", "SER", None, None]
    facts = [part.facts["config"]["reward"]["terminal"] for part in parts_of(study)[1:]]
    assert facts == [False, True, False, False, False, False, False]
    for name in ("behaviours", "quantiles"):
        assert (tmp_path / f"{name}.png").stat().st_size > 5_000
    curves = json.loads((tmp_path / "quantiles.json").read_text())["curves"]
    returns = np.array(setting(rows["ESR"])["samples"]["returns"])
    assert returns.shape == (100, 2)
    assert list(curves) == ["ESR", "BSR 0.5", "SER"]
    np.testing.assert_allclose(curves["ESR"][0][50], np.median(returns[:, 0]), rtol=1e-3)
    (page,) = record_of(told(study, results, tmp_path), tmp_path.glob("*.png"))["tables"]
    assert [(each["name"], each["labels"]) for each in page["groups"][:2]] == [
        ("AETDICE", ["0", "0.5", "1"]),
        ("ESR, paid at the end", ["0"]),
    ]
    assert set(page["rows"][0]["settings"][0]["samples"]) == {"policy", "twin"}
    optimum = solve(space_of(FairTaxi(**LAYOUT)), bsr(0.0)).value
    assert page["rows"][0]["best"]["ESR"] == pytest.approx(optimum)


def test_the_references_are_the_data_and_the_exact_optima(study, without_training, tmp_path):
    references = complete(parts_of(study), tmp_path, ["reference"])["reference"]["references"]
    assert set(references) == {"data", *(f"exact optimum of {name}" for name in ("ESR", "BSR 0.5", "SER"))}
    optimum = solve(space_of(FairTaxi(**LAYOUT)), bsr(0.5))
    found = references["exact optimum of BSR 0.5"]
    assert found["value"] == pytest.approx(optimum.value)
    assert found["scores"]["BSR 0.5"] == pytest.approx(optimum.value)
    both = optimum.outcomes.probability(lambda r: r[0] > 0 and r[1] > 0)
    assert found["quantities"][fair_taxi.SHARES]["both groups"] == pytest.approx(both)


def test_a_study_that_has_only_begun_can_be_shown(study, without_training, shown, tmp_path):
    results = complete(parts_of(study), tmp_path, ["alphas-0"])
    assert "BSR 0.5" in shown(study, results, tmp_path)


def test_the_full_study_has_the_paper_s_rows_in_three_trainings():
    full = STUDIES["fair-taxi"](False)
    own = ["n-from-data", "episodes", "esr-iql", "fairdice", "optidice"]
    assert [p.name for p in parts_of(full)] == ["reference", "alphas-0", "alphas-1", "terminal", *own]
    rows = [row.name for population in full.tables[0].populations for row in population.rows]
    assert set(FAIR_TAXI) <= set(rows)
    quick = STUDIES["fair-taxi"](True)
    assert [p.name for p in parts_of(quick)] == ["reference", "alphas-0", "terminal", *own]


def test_shares_count_whom_an_episode_serves():
    returns = np.array([[1.0, 0.0], [2.0, 1.0], [0.0, 0.5], [-0.3, -0.2]])
    assert fair_taxi.shares(returns) == {"only group 0": 0.25, "both groups": 0.25, "only group 1": 0.25}


def quick_train(dataset, objectives, *, config, progress):
    del progress
    given = {"algorithm": "aetdice", "horizon": LAYOUT["horizon"], "seed": (0,), "config": config}
    return untrained(dataset, objectives, beta=(1e-3,), **given)


@pytest.mark.parametrize("training", [quick_train, pytest.param(train, marks=pytest.mark.slow)])
def test_demo_shows_learner_twin_and_optimum(training, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "train", training)
    monkeypatch.setattr(demo, "SHORT", readable(TINY, "aetdice"))
    monkeypatch.setattr(demo, "FairTaxi", lambda: FairTaxi(**LAYOUT))
    monkeypatch.setattr(demo, "EPISODES", 50)
    console = Console(width=140, record=True, file=io.StringIO())
    demo.demo(tmp_path, console, progress=False)
    text = console.export_text()
    assert "0.5 a1 + 0.5 a3" in text
    assert all(name in text for name in demo.ALPHAS)
    assert "shortened run" in text
    data = json.loads((tmp_path / "behaviours.json").read_text())
    assert list(data["behaviours"]) == list(demo.ALPHAS)
    assert (tmp_path / "behaviours.png").exists()


def test_other_alphas_are_other_facts(tiny):
    effort = tiny(fair_taxi.QUICK, seeds=(0,))
    first, second = (
        parts_of(Study("fair-taxi", (fair_taxi.table_of(e, ((0.0,), (0.0,)), **LAYOUT),)))[1].facts
        for e in (effort, dataclasses.replace(effort, dataset=61))
    )
    assert first != second
