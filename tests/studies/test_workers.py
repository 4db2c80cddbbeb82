"""A study through workers: the same to the bit however many there are, whatever becomes of them."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from support.refusals import complaint
from support.tiny_studies import LAYOUT, SURVIVED, TAXI

from aetdice import InputError, bsr, solve
from aetdice.cli import main
from aetdice.datasets import space_of
from aetdice.engines.process import WITHIN
from aetdice.engines.task import ATTEMPTS
from aetdice.envs import FairTaxi
from aetdice.learning.table import PASSING, RESULTS, SCHEMA, read_table
from aetdice.studies import STUDIES, members, reproduce
from aetdice.studies.parts import Part
from aetdice.studies.registry import Named
from aetdice.studies.running import Place, begin, run_study, write_all
from aetdice.studies.study import Overview, Study

NAMED = Named(TAXI, True)
PARTS = ["reference", "aetdice", "aetdice-rollouts", "fatal"]


def done_by(workers, folder):
    """The study's folder once so many workers have done it, or this process."""
    done = run_study(NAMED, folder, Place(workers=workers))
    assert done.failed == {}
    assert list(done.results) == PARTS
    assert write_all(NAMED.make(), done.results, folder)[1] == []
    return folder


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Done by two workers, one of which is killed in the middle of a part."""
    return done_by(2, tmp_path_factory.mktemp("two"))


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """Done in this process, of which nothing is asked that kills."""
    folder = tmp_path_factory.mktemp("one")
    (folder / "parts" / "fatal").mkdir(parents=True)
    (folder / "parts" / "fatal" / SURVIVED).touch()
    return done_by(None, folder)


def attempts(folder, part):
    return [json.loads(line) for line in (folder / "parts" / part / ATTEMPTS).read_text().splitlines()]


def test_two_workers_one_of_them_killed_find_what_one_process_finds(two, one):
    assert {part: len(attempts(two, part)) for part in PARTS} == {**dict.fromkeys(PARTS, 1), "fatal": 2}
    assert len({attempt["pid"] for part in PARTS for attempt in attempts(two, part)}) > 1
    tables = [read_table(folder).drop_columns(list(PASSING)) for folder in (two, one)]
    assert tables[0].equals(tables[1])
    for part in PARTS:
        first, second = (json.loads((folder / "parts" / f"{part}.json").read_text()) for folder in (two, one))
        assert first["facts"] == second["facts"]
        for found in (first["results"], second["results"]):
            found.pop("seconds", None)
        assert first["results"] == second["results"]
    policies = sorted((two / "parts" / "aetdice").glob("*.npz"))
    assert len([path for path in policies if path.name.startswith("policy")]) == 4
    for path in policies:
        if path.name != "checkpoint.npz":
            first, second = np.load(path), np.load(one / path.relative_to(two))
            assert all(np.array_equal(first[name], second[name]) for name in first.files)


def test_rollouts_wait_for_their_training(two):
    (begun,) = attempts(two, "aetdice-rollouts")
    assert begun["time"] >= (two / "parts" / "aetdice.json").stat().st_mtime - 0.01  # a clock's tick


def test_what_is_done_is_not_done_again(two, monkeypatch):
    monkeypatch.setattr("aetdice.engines.local.Worker", None)  # none is started
    before = {path: path.stat().st_mtime_ns for path in (two / "parts").rglob("*") if path.is_file()}
    assert list(run_study(NAMED, two, Place(workers=2)).results) == PARTS
    assert list(run_study(NAMED, two).results) == PARTS
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_every_member_has_a_row_in_the_columns_of_a_sweep(two):
    table = read_table(two)
    assert table.schema.names == list(SCHEMA)
    rows = table.to_pylist()
    assert [(row["job"], row["objective"], row["beta"], row["member"]) for row in rows] == [
        ("aetdice", "BSR[alpha=0]", 1.0, 0),
        ("aetdice", "BSR[alpha=0]", pytest.approx(0.1), 1),
        ("aetdice", "BSR[alpha=1]", 1.0, 2),
        ("aetdice", "BSR[alpha=1]", pytest.approx(0.1), 3),
    ]
    summary = json.loads((two / "summary.json").read_text())["tables"]["tiny-taxi"]
    assert {row["dataset"] for row in rows} == {"tiny-taxi"}
    assert {row["data_sha256"] for row in rows} == {summary["data"]["sha256"]}
    for row, name in zip(rows, ["ESR", "ESR", "SER", "SER"], strict=True):
        shown = summary["rows"][name]
        setting = shown["settings"][[1.0, 0.1].index(row["beta"])]
        assert row["selected"] == (setting is shown["settings"][shown["selected"]])
        assert (row["rule"], row["definition"]) == (shown["rule"], shown["objective"])
        assert (row["score"], row["twin_score"]) == (setting["trained"]["mean"], setting["twin"])
        assert row["score_low"] <= row["score"] <= row["score_high"]
        assert row["data_score"] == shown["data_score"]
        assert json.loads(row["diagnostics"]) == setting["diagnostics"]
        run = json.loads((two / "parts" / row["job"] / "result.json").read_text())["members"][row["member"]]
        assert (row["verdict"], row["trusted"]) == (run["verdict"], run["trusted"])
        assert row["attempts"] == 1
        assert row["seconds"] > 0
    optimum = solve(space_of(FairTaxi(**LAYOUT)), bsr(0.0)).value
    assert rows[0]["exact_score"] == pytest.approx(optimum)


def test_references_that_are_not_certified_are_no_exact_scores(two):
    study = NAMED.make()
    (table,) = study.tables
    results = run_study(NAMED, two).results
    known = members.member_rows(replace(study, tables=(replace(table, certified=False),)), results, two)
    assert {row["exact_score"] for row in known} == {None}


def test_settings_are_those_in_which_populations_differ(two):
    study = NAMED.make()
    (table,) = study.tables
    (own,) = table.populations
    late = replace(own, name="late", config=own.config.adapted({"reward.terminal": True}))
    known = run_study(NAMED, two).results
    known = {**known, "late": known["aetdice"], "late-rollouts": known["aetdice-rollouts"]}
    several = replace(study, tables=(replace(table, populations=(own, late)),))
    shutil.copy(two / "parts" / "aetdice.json", two / "parts" / "late.json")
    rows = members.member_rows(several, known, two)
    assert [row["settings"] for row in rows] == [{}] * 4 + [{"reward.terminal": True}] * 4
    assert [row["attempts"] for row in rows] == [1] * 4 + [
        None
    ] * 4  # of a part that was brought from elsewhere


def test_what_is_not_rolled_out_has_no_score(two):
    rows = members.member_rows(NAMED.make(), {"aetdice": run_study(NAMED, two).results["aetdice"]}, two)
    assert len(rows) == 4
    assert all("score" not in row and row["verdict"] for row in rows)


def test_without_pyarrow_the_study_is_done_and_a_remark_names_the_extra(two, tmp_path, monkeypatch):
    results = run_study(NAMED, two).results
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    (remark,) = write_all(NAMED.make(), results, tmp_path)[1]
    assert remark.startswith("there is no results.parquet: pyarrow is not installed")
    assert "pip install 'aetdice[tables]'" in remark
    assert (tmp_path / "summary.json").is_file()
    assert not (tmp_path / RESULTS).exists()


def test_in_python_a_study_of_one_s_own_has_a_name(two):
    heard = []
    summary = reproduce(TAXI, two, quick=True, progress=lambda stage, *_: heard.append(stage))
    assert summary == json.loads((two / "summary.json").read_text())
    assert heard == []


def test_a_report_runs_no_code_that_a_file_names(two, capsys):
    assert complaint(capsys, "report", str(two)).endswith(
        f"holds a study of your own, {TAXI}: reproduce it to see its tables"
    )


# Workers.


def test_workers_import_from_where_their_starter_does_and_nothing_from_the_folder_they_are_in(
    tmp_path, monkeypatch
):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "jax.py").write_text("raise SystemExit('a file that lay about')")
    (tmp_path / "own_study.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path / "here")
    done = run_study(Named("own_study:study", True), tmp_path / "out", Place(workers=1))
    assert done == ({"one": {"is_worker": True}}, {})


OWN = """
import os
from aetdice.engines.process import WITHIN
from aetdice.studies.parts import Part
from aetdice.studies.study import Study

def study(quick):
    return Study("own", (), parts=(Part("one", {}, lambda *_: {"is_worker": WITHIN in os.environ}),))
"""


def test_a_worker_begins_no_work_of_its_own_which_would_wait_for_it(tmp_path, monkeypatch):
    monkeypatch.setenv(WITHIN, "1")
    with pytest.raises(InputError, match=r"belongs under if __name__ == .__main__., since workers import it"):
        reproduce(TAXI, tmp_path, workers=1, progress=False)


# Folders.


def test_a_folder_is_of_one_study(tmp_path):
    begin(Named("fair-taxi", True), tmp_path)
    begin(Named("fair-taxi", True), tmp_path)
    with pytest.raises(InputError, match="holds the study fair-taxi, quick, not fair-taxi: choose another"):
        begin(Named("fair-taxi", False), tmp_path)
    (tmp_path / "study.json").write_text("[]")
    with pytest.raises(InputError, match=r"study\.json does not say which study this is"):
        begin(Named("fair-taxi", True), tmp_path)


@pytest.mark.parametrize("name", ["fair-texi", ":study", "support.tiny_studies:bus", "no.such.module:study"])
def test_an_unknown_study_is_refused(name, tmp_path):
    with pytest.raises(InputError, match=f"there is no study '{name}'"):
        reproduce(name, tmp_path / "study", progress=False)
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--workers 0", "at least one worker is needed, not 0"),
        ("--workers 2 --threads 0", "at least one thread is needed, not 0"),
        ("--workers 2 --address auto", "an address is of a Ray cluster: say --engine ray"),
        ("--threads 2", "threads and an address are of workers: say --workers or --engine, too"),
        ("--workers 2 --gpus 1", "gpus are what a part asks of a Ray cluster: say --engine ray"),
        ("--engine ray --workers 2", "a Ray cluster has its own number of workers: leave --workers out"),
    ],
)
def test_command_refuses(options, message, capsys, tmp_path):
    out = str(tmp_path / "study")
    assert complaint(capsys, "reproduce", "fair-taxi", "--out", out, *options.split()) == message
    assert not (tmp_path / "study").exists()


@pytest.fixture
def refused_study(monkeypatch):
    """Three parts in place of the strangers, the first of which is refused."""

    def refuse(folder, progress):
        raise InputError("the data has changed")

    works = {"refused": refuse, "first": lambda *_: {"cells": []}, "second": lambda *_: {"cells": []}}
    parts = tuple(Part(name, {}, work) for name, work in works.items())
    overview = lambda found: Overview([], [f"{len(found)} are done"])  # noqa: E731
    made = lambda quick: Study("strangers", (), parts=parts, overview=overview)  # noqa: E731
    monkeypatch.setitem(STUDIES, "strangers", made)


def test_a_part_that_is_refused_stops_no_other_and_the_command_ends_with_its_sentence(
    refused_study, tmp_path, capsys
):
    with pytest.raises(SystemExit) as stopped:
        main(["reproduce", "strangers", "--quick", "--out", str(tmp_path), "--quiet"])
    assert stopped.value.code == 2
    said = capsys.readouterr()
    assert said.err == "error: 1 part(s) came to nothing, the first is refused: the data has changed\n"
    assert "2 are done" in said.out
    assert {path.stem for path in (tmp_path / "parts").glob("*.json")} == {"first", "second"}
    main(["report", str(tmp_path), "--quiet"])
    assert "2 of 3 parts are done" in (tmp_path / "report.html").read_text()
    capsys.readouterr()
    said = complaint(capsys, "report", str(tmp_path), str(tmp_path), "--quiet")
    assert said == "a study has a page of its own: give its folder alone"


def test_a_report_of_a_study_that_has_only_begun_says_so(refused_study, tmp_path, capsys):
    begin(Named("strangers", True), tmp_path)
    assert complaint(capsys, "report", str(tmp_path)) == f"no part of the study in {tmp_path} is done yet"
