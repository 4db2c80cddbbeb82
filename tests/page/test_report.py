"""What a report says, and that it works in a real browser: by keyboard, without asking for anything."""

import dataclasses
import json
import re
import shutil

import numpy as np
import pytest
from support.refusals import complaint
from support.visits import DESKTOP, PHONE, Visit

from aetdice import InputError, bsr, esr, load_run, ser, write_report
from aetdice.cli import main
from aetdice.learning.verdict import Verdict
from aetdice.page.document import document, embedded
from aetdice.page.gathering import gather
from aetdice.page.numbers import number
from aetdice.page.pareto import hypervolume, on_front
from aetdice.page.report import record_of
from aetdice.page.statistics import commonest, distribution, fairness, tail_mean
from aetdice.page.sweep import axes_of
from aetdice.page.words import described, findings

DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


def record_in(page):
    return json.loads(DATA.search(page.read_text(encoding="utf-8"))[1])


def test_fairness_tells_within_an_episode_from_on_average():
    turns = np.array([[4.0, 0.0], [0.0, 4.0], [0.0, 0.0]])
    assert fairness(turns) == {"share": 0.0, "gini": 0.5}
    assert fairness(turns.mean(axis=0, keepdims=True)) == {"share": 0.5, "gini": 0.0}
    assert fairness(np.array([[3.0, 1.0]])) == {"share": 0.25, "gini": 0.25}
    assert fairness(np.array([[1.0, -1.0]])) is None
    assert fairness(np.zeros((2, 2))) is None


def test_tail_is_the_mean_of_the_worst_tenth_of_each_objective():
    returns = np.stack([np.arange(20.0), np.arange(20.0)[::-1]], axis=1)
    assert tail_mean(returns).tolist() == [0.5, 0.5]
    assert tail_mean(returns[:1]).tolist() == [0.0, 19.0]


def test_outcomes_are_those_seen_several_times():
    returns = np.array([[1.0, 0.0]] * 6 + [[0.0, 1.0]] * 4)
    assert commonest(returns) == [{"returns": [1.0, 0.0], "share": 0.6}]
    shown = distribution(returns, 3)
    assert (shown["episodes"], len(shown["sample"])) == (10, 3)


def test_front_and_hypervolume_of_a_picture():
    means = np.array([[1.0, 3.0], [2.0, 2.0], [1.0, 2.0], [1.0, 3.0]])
    assert on_front(means).tolist() == [True, True, False, True]
    pytest.importorskip("moocore")
    assert hypervolume(means, np.zeros(2)) == pytest.approx(5.0)
    assert hypervolume(means, np.full(2, 9.0)) == 0.0
    assert hypervolume(means[:1], np.zeros(2)) is None


@pytest.mark.parametrize(
    ("value", "uncertainty", "words"),
    [
        (1.23456, 0.0, "1.235"),
        (1.23456, 0.1, "1.23"),
        (-0.001, 0.5, "0.00"),
        (12345.6, 30.0, "12346"),
        (0.0, 0.0, "0"),
    ],
)
def test_numbers_have_the_digits_that_are_known(value, uncertainty, words):
    assert number(value, uncertainty) == words


def test_an_objective_is_told_in_words_and_symbols():
    assert described(bsr(0.5), 2)["name"] == "BSR(α = 0.5)"
    own = dataclasses.replace(ser(), label="mine")
    assert described(own, 2)["words"].startswith("Only the average return")
    assert described(esr(), 2)["formula"] == "E[Σ_i log R_i]"


def test_a_verdict_is_cut_into_findings_with_their_advice():
    words = "All is well with 0.5 of it. 30% of the gain is LOST. Train longer. The policy differs."
    assert [(each["words"], each["alarm"]) for each in findings(words)] == [
        ("All is well with 0.5 of it.", False),
        ("30% of the gain is LOST. Train longer.", True),
        ("The policy differs.", False),
    ]


def test_data_cannot_leave_its_element_and_numbers_are_json():
    name = "</script><!-- <script> & \u2028"
    text = embedded({"name": name, "odd": [float("nan"), float("inf"), 1.0]})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"name": name, "odd": [None, None, 1.0]}
    page = document("<b>", {"runs": "{{script}}"})
    assert "<title>&lt;b&gt;</title>" in page
    assert page.count("use strict") == 1


@pytest.mark.trains
def test_scores_are_those_of_the_result_file(swept, swept_page):
    result = json.loads((swept / "result.json").read_text(encoding="utf-8"))
    record = record_in(swept_page)
    assert record["objectives"] == ["group0", "group1"]
    assert [policy["selected"] for policy in record["policies"]] == [True] * 6  # every seed of a setting
    for policy, member in zip(record["policies"], result["members"], strict=True):
        rows = {row["kind"]: row["scores"] for row in policy["rows"]}
        for name in ("trained", "ESR", "SER"):
            assert rows["policy"][name]["value"] == pytest.approx(member["scores"][name]["value"])
            assert rows["twin"][name]["low"] == pytest.approx(member["twin_scores"][name]["low"])
    optima = [
        row["scores"]["trained"]["value"] for row in record["policies"][0]["rows"] if row["kind"] == "optimum"
    ]
    assert optima == [result["exact_score"]]


@pytest.mark.trains
def test_a_slider_goes_through_what_varied(swept):
    axes = axes_of(load_run(swept))
    assert [(axis["name"], axis["labels"]) for axis in axes] == [
        ("α", ["0", "0.5", "1"]),
        ("seed", ["0", "1"]),
    ]
    assert axes[0]["places"] == [0, 0, 1, 1, 2, 2]


@pytest.mark.trains
def test_a_log_without_environment_has_its_estimate_and_names(logged_page, hostile_log):
    record = record_in(logged_page)
    assert record["objectives"] == list(hostile_log.objectives)
    (policy,) = record["policies"]
    assert {row["kind"] for row in policy["rows"]} >= {"data", "estimate", "twin_estimate"}
    assert policy["answer"].startswith("By the log alone, the policy would attain")
    assert record["runs"][0]["provenance"]["command"] is None


@pytest.mark.trains
def test_several_runs_share_a_page_or_are_refused(swept, logged, tmp_path, capsys):
    copy = shutil.copytree(swept, tmp_path / "again")
    main(["report", str(swept), str(copy), "--out", str(tmp_path / "both.html"), "--episodes", "20"])
    assert capsys.readouterr().out == f"{tmp_path / 'both.html'}\n"
    record = record_in(tmp_path / "both.html")
    assert [run["name"] for run in record["runs"]] == ["taxi", "again"]
    assert record["samples"][0]["episodes"] == 20
    with pytest.raises(
        InputError, match="runs of one report share their objectives: taxi has group0, group1"
    ):
        write_report([swept, logged], tmp_path / "page.html")


@pytest.mark.trains
def test_a_run_in_memory_has_a_report_too(logged, tmp_path):
    record = record_in(write_report(load_run(logged), tmp_path / "page.html"))
    assert record["runs"][0]["curves"] == {}


@pytest.mark.trains
@pytest.mark.parametrize(("word", "trusted"), [("supported", True), ("do not trust", False)])
def test_a_policy_whose_estimate_is_not_to_be_trusted_is_not_trusted(word, trusted, logged, tmp_path):
    run = load_run(logged)
    run.members[0] = dataclasses.replace(run.members[0], verdict=Verdict(True, "The policy differs."))
    run.estimates[0]["policy"]["support"]["word"] = word
    assert record_in(write_report(run, tmp_path / "page.html"))["policies"][0]["trusted"] is trusted


@pytest.mark.trains
def test_unfinished_and_damaged_folders_are_refused_in_a_sentence(logged, tmp_path, capsys):
    for name, content, words in (
        ("result.json", None, "the run has not ended; continue it with aetdice resume"),
        ("result.json", "{", "cannot be read"),
        ("result.json", "{}", "is not the result of a run"),
        ("config.json", None, "is not a run"),
        ("metrics.jsonl", '{"stage": "values", "st', "line 1 of"),
        ("policy-0.npz", "none", "policy-0.npz"),
        ("data_returns.npz", "none", "data_returns.npz cannot be read"),
    ):
        folder = tmp_path / f"{name}-{words[:6]}"
        shutil.copytree(logged, folder)
        (folder / name).unlink()
        if content is not None:
            (folder / name).write_text(content, encoding="utf-8")
        assert words in complaint(capsys, "report", str(folder)), name
        assert not (folder / "report.html").exists()


def test_options_that_make_no_sense_are_refused(tmp_path):
    for runs, path, options, words in (
        ([], "page.html", {}, "at least one run"),
        (["none"], "page.html", {"episodes": 0}, "at least one episode"),
        (["none"], ".", {}, "is a folder"),
        (["none"], "page.html", {}, "none is not a run"),
    ):
        with pytest.raises(InputError, match=words):
            write_report(runs, tmp_path / path, **options)


@pytest.mark.slow
@pytest.mark.trains
def test_fifty_policies_of_five_objectives_stay_small(swept):
    """Returns are noise: nothing in them repeats."""
    rng, one = np.random.default_rng(0), gather(swept)
    run = dataclasses.replace(one.run, members=[one.run.members[0]] * 50, data_returns=rng.random((300, 5)))
    returns = [rng.random((300, 5)) for _ in range(100)]
    curve = {"steps": list(range(80)), "values": rng.random((50, 80)).round(5).tolist()}
    many = dataclasses.replace(
        one,
        run=run,
        names=tuple("abcde"),
        policies=returns[:50],
        twins=returns[50:],
        curves={"values": dict.fromkeys(map(str, range(8)), curve)},
    )
    assert 1e5 < len(document("many", record_of([many])).encode()) < 3e6


# In a browser.


@pytest.mark.trains
@pytest.mark.parametrize(("viewport", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")])
@pytest.mark.parametrize("kind", ["swept_page", "logged_page"])
def test_a_page_is_whole_quiet_and_accessible(browser, request, kind, viewport, scheme):
    path = request.getfixturevalue(kind)
    with Visit(browser, path, viewport, scheme) as visit:
        assert visit.complaints == []
        assert visit.requests == [path.as_uri()]
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
        assert visit.barriers() == []
        for section in ("asked", "attained", "returns", "training", "verdict", "provenance"):
            assert visit.page.is_visible(f"#{section}"), section
        assert "NaN" not in visit.page.content()


@pytest.mark.trains
def test_the_slider_changes_numbers_and_pictures(browser, swept_page):
    sections = ("attained", "returns", "population", "training")
    with Visit(browser, swept_page) as visit:
        visit.page.focus("#slider-0")
        seen = []
        for _ in range(3):
            seen.append((visit.text("#answer"), visit.text("#scores"), *map(visit.drawn, sections)))
            visit.page.keyboard.press("ArrowRight")
            visit.page.wait_for_selector("#returns svg")
        assert visit.page.evaluate("document.activeElement.id") == "slider-0"
        assert all(len(set(column)) == 3 for column in zip(*seen, strict=True))
        assert "BSR(α = 1)" in visit.text("#answer")
        assert visit.page.get_attribute("#slider-0", "aria-valuetext") == "1"
        visit.page.focus("#slider-1")  # seeds
        before = visit.text("#answer")
        visit.page.keyboard.press("ArrowRight")
        assert visit.text("#answer") != before
        assert visit.complaints == []


@pytest.mark.trains
def test_headings_sort_the_table_by_keyboard(browser, swept_page):
    with Visit(browser, swept_page) as visit:
        values = json.loads(visit.text("#data") or visit.page.text_content("#data"))["policies"][0]["rows"]
        order = sorted(
            (row for row in values if "SER" in row["scores"]), key=lambda row: row["scores"]["SER"]["value"]
        )
        visit.page.focus("#scores th[data-name=SER] button")
        visit.page.keyboard.press("Enter")
        assert visit.rows()[:3] == [row["kind"] for row in reversed(order)]
        visit.page.keyboard.press("Enter")
        assert visit.rows() == [*(row["kind"] for row in order), "optimum"]
        assert visit.page.get_attribute("#scores th[data-name=SER]", "aria-sort") == "ascending"


@pytest.mark.trains
def test_names_of_a_log_are_shown_and_never_run(browser, logged_page, hostile_log):
    with Visit(browser, logged_page) as visit:
        assert visit.page.evaluate("window.hacked") is None
        assert visit.page.query_selector("img") is None
        assert visit.page.query_selector("main b") is None
        assert all(" ".join(name.split()) in visit.text("#asked") for name in hostile_log.objectives)
        assert visit.complaints == []


@pytest.mark.trains
def test_a_printed_page_has_the_sections(browser, swept_page):
    with Visit(browser, swept_page) as visit:
        visit.page.emulate_media(media="print")
        assert visit.page.pdf().startswith(b"%PDF")
        assert visit.page.evaluate("getComputedStyle(document.querySelector('nav')).position") == "static"
