"""The framework that all studies share, on a table that was made up."""

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest
from support.training import tiny_episodes
from support.untrained import untrained

from aetdice import bsr, esr, ser
from aetdice.config import TrainingConfig
from aetdice.evaluation.estimates import Estimate, estimate, leaders, spread, tied
from aetdice.learning.run import gap_share, select_members
from aetdice.report.figures import quantile_curves
from aetdice.studies.merging import merge_table
from aetdice.studies.populations import parts_of, training_record
from aetdice.studies.running import complete
from aetdice.studies.score_tables import gap_sheet, gap_words, markdown, setting, verdict, with_spread
from aetdice.studies.study import Dataset, Effort, Population, Rollouts, Row, Study, Table, reference_of

CONFIG = TrainingConfig().adapted({"network.hidden": (4,)})
COLUMNS = {"ESR": esr(), "SER": ser()}
ROWS = (Row("fair", ser(), "SER", "the optimum"), Row("each", bsr(0.0), "ESR"))
POPULATION = Population("aetdice", "aetdice", ROWS[:1], {"beta": (1.0, 0.1)}, CONFIG, cloning_row="cloning")


def made_up_table(**changes) -> Table:
    """Policies whose returns are drawn at random."""

    def play(policies, episodes):
        rng = np.random.default_rng(0)
        drawn = [rng.uniform(1, 9, (episodes, 2)) for _ in policies]
        return [Rollouts(returns, {"shares": {"up": 0.5}}, {"returns": []}) for returns in drawn]

    table = Table(
        name="made-up",
        title="a table",
        horizon=3,
        effort=Effort((0, 1), 20, 50, {}, CONFIG),
        columns=COLUMNS,
        populations=(POPULATION,),
        facts={},
        dataset=lambda _: Dataset(tiny_episodes()),
        play=play,
        references=lambda dataset: {
            "data": reference_of(dataset.seen.returns, COLUMNS),
            "the optimum": {"value": 9.0, "scores": {"SER": 9.0}},
        },
        paper={"fair": {"SER": (1.5, 0.1)}},
    )
    return dataclasses.replace(table, **changes)


def score(value: float) -> dict[str, float]:
    return {"value": value, "low": value - 0.1, "high": value + 0.1}


def rollouts(value: float, *rows: str) -> dict:
    return {
        "scores": {heading: score(value) for heading in COLUMNS},
        "trained": {row: score(value) for row in rows},
        "mean_returns": [value, value],
        "variances": [1.0, 1.0],
        "quantities": {"shares": {"up": value / 10}},
        "samples": {"returns": [[value, value]]},
    }


def results(values=((3.0, 5.0), (4.0, 5.0)), twins=(1.0, 2.0), selected=1) -> dict:
    """Two settings with the values of two seeds each, and their twins."""
    settings, policies = [], {}
    for i, pair in enumerate(values):
        seeds = []
        for seed, value in enumerate(pair):
            member = 2 * i + seed
            policies[f"policy-{member}"] = rollouts(value, "fair")
            known = {"claimed_value": value + 1}
            seeds.append({"seed": seed, "policy": f"policy-{member}", "diagnostics": known})
        settings.append({"params": {"beta": (1.0, 0.1)[i], "learning_rate": 1e-3}, "seeds": seeds})
    for seed, value in enumerate(twins):
        policies[f"twin-{seed}"] = rollouts(value, "fair")
    row = {"data_score": 0.5, "settings": settings, "selected": selected, "rule": "the rule"}
    references = {
        "data": {"scores": {"ESR": 0.1}, "mean_returns": [1.0, 2.0]},
        "the optimum": {"value": 9.0, "scores": {"SER": 9.0}},
    }
    return {
        "reference": {"references": references, "objectives": ["one", "other"]},
        "aetdice": {"rows": {"fair": row}, "twins": {"0": "twin-0", "1": "twin-1"}, "policies": policies},
    }


# Gaps, spreads and selection.


def test_gap_share_is_the_way_from_the_twin_to_the_optimum():
    assert gap_share(7.0, 1.0, 9.0) == 0.75
    assert gap_share(1.0, 1.0, 9.0) == 0.0
    assert gap_share(9.0, 9.0, 9.0) is None


def test_a_table_shows_the_gap_share_of_every_seed():
    summary = merge_table(made_up_table(), results())
    chosen = setting(summary["rows"]["fair"])
    assert chosen["gap_shares"] == [(4 - 1) / (9 - 1), (5 - 2) / (9 - 2)]
    assert chosen["twin"] == 1.5
    sheet = gap_sheet(summary)
    cells = {head: cell.text for head, cell in zip(sheet.headings, sheet.lines[0].cells, strict=True)}
    assert cells["gap closed"] == "40.2% (37.5%, 42.9%)"
    assert (cells["twin"], cells["best known"], cells["claimed"]) == ("1.5", "9", "5.5")
    assert gap_words([0.5]) == "50.0%"
    assert gap_words([None]) == gap_words(None) == ""


def test_without_its_optimum_a_row_has_no_gap():
    known = results()
    del known["reference"]
    summary = merge_table(made_up_table(), known)
    assert setting(summary["rows"]["fair"])["gap_shares"] is None
    assert summary["objectives"] == []


def test_spreads_over_seeds_have_n_minus_one_below():
    assert spread([3.0, 5.0]) == {"mean": 4.0, "sd": pytest.approx(math.sqrt(2))}
    assert spread([3.0]) == {"mean": 3.0, "sd": None}
    rows = merge_table(made_up_table(), results(selected=0))["rows"]
    chosen = setting(rows["fair"])
    assert chosen["scores"]["SER"]["sd"] == pytest.approx(math.sqrt(2))
    assert chosen["trained"]["sd"] == pytest.approx(math.sqrt(2))
    assert chosen["quantities"]["shares"]["up"]["sd"] == pytest.approx(math.sqrt(2) / 10)


@pytest.mark.parametrize(("claims", "selected"), [((10, 0, 6, 6), 1), ((10, 4, 6, 6), 0)])
def test_the_setting_is_selected_by_its_mean_over_seeds(claims, selected):
    """In the first case the first seed alone would take the first setting."""
    run = untrained(
        tiny_episodes(),
        [ser()],
        algorithm="aetdice",
        horizon=3,
        seed=(0, 1),
        config=CONFIG,
        beta=(1.0, 0.1),
    )
    for member, claim in zip(run.members, claims, strict=True):
        member.diagnostics = {**member.diagnostics, "held_out_claimed_value": float(claim)}
    run.selections = select_members(run.members)
    record = training_record(run, POPULATION)
    assert record["rows"]["fair"]["selected"] == selected
    assert [s["params"]["beta"] for s in record["rows"]["fair"]["settings"]] == [1.0, 0.1]
    assert record["twins"] == {"0": "twin-0", "1": "twin-1"}


def test_the_best_setting_is_that_of_the_largest_mean_over_seeds():
    known = results(((9.0, 1.0), (6.0, 6.0)), selected=0)
    row = merge_table(made_up_table(), known)["rows"]["fair"]
    assert (row["best"], row["shown"]) == (1, 0)
    looked = dataclasses.replace(POPULATION, shows="best")
    row = merge_table(made_up_table(populations=(looked,)), known)["rows"]["fair"]
    assert (row["best"], row["shown"]) == (1, 1)


# Intervals and ties.


def test_seeds_that_agree_by_chance_keep_the_noise_of_their_episodes():
    close = estimate([{"value": 1.0, "low": 0.9, "high": 1.1}] * 3)
    assert close.half == pytest.approx(0.1 / np.sqrt(3), rel=1e-6)
    apart = estimate([{"value": v, "low": v, "high": v} for v in (0.0, 1.0, 2.0)])
    assert apart.half == pytest.approx(4.302653 / np.sqrt(3), rel=1e-5)
    assert Estimate.read(apart.record()) == apart


def test_ties():
    best, near, far = (Estimate(mean, None, 0.1, None) for mean in (1.0, 0.8, 0.7))
    assert tied(near, best)
    assert not tied(far, best)
    assert tied(Estimate(0.7, None, 0.1, 2.0), best)  # few seeds say less
    assert leaders({"c": far, "b": near, "a": best}) == ["a", "b"]
    assert leaders({}) == []


# Words.


def test_the_verdict_says_who_leads_by_how_much_and_whether_it_was_trained_for_it():
    text = " ".join(each.words for each in verdict(merge_table(made_up_table(), results(selected=0))))
    assert "SER: fair leads cloning by 2.5 (1.8 s.d.); best or tied of those trained for it: fair" in text
    lost = verdict(merge_table(made_up_table(), results(((0.0, 0.1),) * 2, (1.5, 1.6))))
    text = " ".join(each.words for each in lost if each.tone == "alarm")
    assert "SER: cloning leads fair by 1.5 (21.2 s.d.); NOT won by a row trained for it" in text


def test_markdown_has_the_paper_s_numbers_the_best_in_bold_and_references_last():
    lines = markdown(merge_table(made_up_table(), results(selected=0))).splitlines()
    assert lines == [
        "| a table | ESR | SER | up |",
        "| --- | --- | --- | --- |",
        "| fair | **4.00 ± 1.41** | **4.00 ± 1.41** (1.50) | 40% |",
        "| cloning | 1.50 ± 0.71 | 1.50 ± 0.71 | 15% |",
        "| data | 0.100 |  |  |",
        "| the optimum |  | 9.00 |  |",
    ]


def test_spreads_are_shown_to_the_place_of_their_means():
    assert with_spread({"mean": 1089.56, "sd": 27.6}) == "1090 ± 28"
    assert with_spread({"mean": 6190679.0, "sd": 299593.0}) == "(6.19 ± 0.30)e6"
    assert with_spread({"mean": 123456.0, "sd": None}) == "1.23e5"
    assert with_spread({"mean": 0.0512, "sd": None}) == "0.051"
    assert with_spread({"mean": 2.0, "sd": 1.0, "half": 3.0}, interval=True) == "2.00 ± 3.00"


def test_names_with_square_brackets_are_shown_as_they_are(shown, tmp_path):
    row = Row("[bold]", ser(), "SER", "the optimum")
    table = made_up_table(populations=(dataclasses.replace(POPULATION, rows=(row,)),))
    known = json.loads(json.dumps(results()).replace('"fair"', '"[bold]"'))
    assert "[bold]" in shown(Study("made-up", (table,)), known, tmp_path)


# From parts to files.


@pytest.mark.parametrize("separate", [False, True])
def test_a_study_is_trained_rolled_out_and_reported(separate, without_training, shown, tmp_path):
    study = Study("made-up", (made_up_table(separate=separate),))
    names = ["reference", "aetdice", *(["aetdice-rollouts"] if separate else [])]
    assert [part.name for part in parts_of(study)] == names
    found = complete(parts_of(study), tmp_path)
    assert "a table (the paper's)" in shown(study, found, tmp_path)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["study"] == "made-up"
    assert list(summary["tables"]["made-up"]["rows"]) == ["fair", "cloning"]
    made = summary["made"]
    assert set(made) == set(names)
    assert made["aetdice"]["facts"]["rows"] == {"fair": ser().name}
    assert made["aetdice"]["facts"]["config"]["network"]["hidden"] == [4]
    assert all({"commit", "date", "device", "versions"} <= set(each) for each in made.values())
    assert '"samples"' not in json.dumps(summary)
    assert "| fair | " in (tmp_path / "tables.md").read_text(encoding="utf-8")
    without_training.setattr("aetdice.studies.populations.train", None)  # nothing is done twice
    assert complete(parts_of(study), tmp_path) == found


def test_nothing_at_all_is_shown_too(shown, tmp_path):
    assert "figures and their data" in shown(Study("made-up", (made_up_table(),)), {}, tmp_path)


def test_only_the_selected_setting_is_rolled_out_where_that_is_asked(without_training, tmp_path):
    sparing = dataclasses.replace(POPULATION, evaluates="selected", rows=ROWS[1:], cloning_row=None)
    study = Study("made-up", (made_up_table(populations=(sparing,)),))
    found = complete(parts_of(study), tmp_path)["aetdice"]
    selected = found["rows"]["each"]["selected"]
    seeds = found["rows"]["each"]["settings"][selected]["seeds"]
    assert list(found["policies"]) == [seed["policy"] for seed in seeds]  # and no twins
    table = study.tables[0]
    rows = merge_table(table, complete(parts_of(study), tmp_path))["rows"]
    assert [s["trained"] is None for s in rows["each"]["settings"]] == [i != selected for i in range(2)]


def test_figures_take_a_path_as_text(tmp_path):
    path = tmp_path / "deep" / "curves.png"
    quantile_curves(str(path), [0.0, 1.0], {"a": [[1.0, 2.0]]}, ["one"], "title")
    assert Path(path).stat().st_size > 1000
