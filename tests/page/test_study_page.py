"""The page of a study: what it tells, in a real browser, of parts that are missing, and of hostile names."""

import json
import re

import pytest
from support.made_up_studies import HOSTILE, told_of, told_strangers
from support.visits import DESKTOP, PHONE, Visit

from aetdice import InputError
from aetdice.cli import main
from aetdice.page import write_study_report
from aetdice.page.study import LARGEST, record_of
from aetdice.page.study_table import groups
from aetdice.studies import STUDIES
from aetdice.studies.parts import Part
from aetdice.studies.study import Overview, Study

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8cfc00000030101"
)
PNG += bytes.fromhex("0018dd8db00000000049454e44ae426082")


@pytest.fixture(scope="module")
def study_page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    (folder / "a figure.png").write_bytes(PNG)
    told, figures = told_of(HOSTILE), [folder / "a figure.png"]
    return write_study_report(told, folder / "report.html", figures=figures, command="aetdice reproduce it")


@pytest.fixture(scope="module")
def strangers_page(tmp_path_factory):
    return write_study_report(told_strangers(), tmp_path_factory.mktemp("strangers") / "report.html")


# What it tells.


def test_rows_that_differ_in_a_parameter_are_swept_in_its_order():
    def row(objective, algorithm="aetdice"):
        return {"objective": objective, "algorithm": algorithm}

    rows = {
        "A SER": row("BSR[alpha=1]: F"),
        "A ESR": row("BSR[alpha=0]: F"),
        "A SER, weighed": row("BSR[alpha=1]: F"),
        "A [0.5, 0.5]": row("LSR: F = R; G = sum, weights (0.5, 0.5)"),
        "IQL": row("BSR[alpha=0]: F", "esr-iql"),
        "CD(0.1)": row("CD[rho=0.1]: F"),
        "CD(0.5)": row("CD[rho=0.5]: F"),
        "cloning": row(None, "bc"),
    }
    assert [(each["name"], each["parameter"], each["rows"]) for each in groups(rows)] == [
        ("A", "α", ["A ESR", "A SER"]),
        ("A SER, weighed", "α", ["A SER, weighed"]),
        ("A [0.5, 0.5]", "", ["A [0.5, 0.5]"]),
        ("IQL", "α", ["IQL"]),
        ("CD", "ρ", ["CD(0.1)", "CD(0.5)"]),
        ("cloning", "", ["cloning"]),
    ]


def test_the_answer_counts_columns_won_and_parts_done():
    record = record_of(told_of("fair"))
    words = "In 1 of 2 columns a row that was trained for the column is the best, or tied with it. "
    assert record["answer"] == words + "1 of 2 parts are done; the page shows those."
    assert record["about"] == [["parts that are missing", "rest"]]
    assert not record["complete"]
    assert re.match(r"With nothing set, \d\d % of the gap is closed", record_of(told_strangers())["answer"])


def test_scores_stand_beside_the_paper_s_and_what_is_best_or_trained_for_is_marked():
    (sheet, *_) = record_of(told_of("fair"))["tables"][0]["sheets"]
    assert sheet["title"] == "Scores (the paper's)"
    cells = {line["cells"][0]["text"]: line["cells"][1:] for line in sheet["lines"]}
    assert [cell["own"] for cell in cells["A ESR"]] == [True, False]
    assert [cell["best"] for cell in cells["A ESR"]] == [True, False]
    assert cells["A ESR"][0]["aside"] == "1.50"
    assert cells["cloning"][1]["best"]


def test_a_picture_that_is_too_large_stays_in_the_folder(tmp_path):
    paths = [tmp_path / "large.png", tmp_path / "small.png"]
    for path, size in zip(paths, (LARGEST + 1, 10), strict=True):
        path.write_bytes(bytes(size))
    large, small = record_of(told_of("fair"), paths)["figures"]
    assert large == {"name": "large.png", "data": None}
    assert small["data"].startswith("data:image/png;base64,")


def test_what_is_no_study_is_refused_in_a_sentence(tmp_path):
    damaged = told_of("fair")
    del damaged["tables"][0]["rows"]["A ESR"]["settings"]
    with pytest.raises(InputError, match="this is no study that can be shown: 'settings'"):
        write_study_report(damaged, tmp_path / "report.html")
    assert not list(tmp_path.iterdir())


# From the command line.


@pytest.fixture
def tiny_study(monkeypatch):
    parts = tuple(Part(name, {}, lambda *_: {"found": 1}) for name in ("first", "second"))
    overview = lambda found: Overview([], [f"{len(found)} found"], "All is well.")  # noqa: E731
    monkeypatch.setitem(
        STUDIES, "strangers", lambda quick: Study("strangers", (), parts=parts, overview=overview)
    )


def reproduce(folder, *words):
    main(["reproduce", "strangers", "--quick", "--out", str(folder), "--report", *words])
    text = (folder / "report.html").read_text(encoding="utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])


def test_parts_that_are_done_have_a_page_and_then_all_of_them(tiny_study, tmp_path, capsys):
    record = reproduce(tmp_path, "--part", "second")
    assert "".join(capsys.readouterr().out.split()).endswith(f"page:{tmp_path / 'report.html'}")
    assert record["answer"] == "All is well. 1 of 2 parts are done; the page shows those."
    assert [line["cells"][0]["text"] for line in record["provenance"]["lines"]] == ["second"]
    assert record["command"] == f"aetdice reproduce strangers --quick --report --out {tmp_path}"
    record = reproduce(tmp_path)
    assert (record["complete"], record["notes"]) == (True, ["2 found"])


@pytest.mark.parametrize("content", ["{", "[]", '{"facts": {}, "results": []}', "[" * 100_000])
def test_a_damaged_part_is_one_sentence(content, tiny_study, tmp_path, capsys):
    reproduce(tmp_path)
    (tmp_path / "parts" / "first.json").write_text(content)
    with pytest.raises(SystemExit, match="2"):
        reproduce(tmp_path)
    error = capsys.readouterr().err
    assert "first.json is not a part of a study" in error
    assert error.strip().count("\n") == 0


# In a browser.


@pytest.mark.parametrize(("viewport", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")])
@pytest.mark.parametrize("kind", ["study_page", "strangers_page"])
def test_a_page_is_whole_quiet_and_accessible(browser, request, kind, viewport, scheme):
    path = request.getfixturevalue(kind)
    assert path.stat().st_size < 3e6
    with Visit(browser, path, viewport, scheme, "#provenance table") as visit:
        assert visit.complaints == []
        assert [each for each in visit.requests if not each.startswith("data:")] == [path.as_uri()]
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
        assert visit.barriers() == []
        links = visit.page.eval_on_selector_all("#controls a", "all => all.map(one => one.hash.slice(1))")
        assert len(links) > 2
        assert all(visit.page.is_visible(f"#{section}") for section in links)
        assert "NaN" not in visit.page.content()


def test_sliders_change_numbers_and_pictures(browser, study_page):
    with Visit(browser, study_page, awaited="#table-0 svg") as visit:
        seen = []
        visit.page.focus("#table-0-stop")
        for _ in range(3):
            seen.append((visit.text(".looked"), visit.drawn("table-0")))
            visit.page.keyboard.press("ArrowRight")
        assert all(len(set(column)) == 3 for column in zip(*seen, strict=True))
        assert visit.page.get_attribute("#table-0-stop", "aria-valuetext") == "1"
        visit.page.focus("#table-0-setting")
        before = visit.text(".looked"), visit.drawn("table-0")
        visit.page.keyboard.press("ArrowLeft")
        after = visit.text(".looked"), visit.drawn("table-0")
        assert all(one != other for one, other in zip(before, after, strict=True))
        assert visit.page.evaluate("document.activeElement.id") == "table-0-setting"
        visit.page.select_option("#table-0-method", label="cloning")
        assert visit.text(".looked") == "cloning."
        assert visit.complaints == []


def test_headings_sort_by_number_by_word_and_not_at_all(browser, study_page, strangers_page):
    first = "all => all.map(one => one.innerText)"
    with Visit(browser, study_page, awaited="#table-0-sheet") as visit:
        names = "#table-0-sheet tbody th"
        plain = visit.page.eval_on_selector_all(names, first)
        orders = []
        visit.page.focus("#table-0-sheet th[data-name='0'] button")
        for _ in range(3):
            visit.page.keyboard.press("Enter")
            orders.append(visit.page.eval_on_selector_all(names, first))
        assert orders[0][:2] == ["best", "A ESR"]
        assert orders[1] == orders[0][::-1]
        assert orders[2] == plain
    with Visit(browser, strangers_page, awaited="#more table") as visit:
        heads = visit.page.locator("#more table").first.locator("thead button")
        heads.nth(0).click()  # which half
        halves = visit.page.locator("#more table").first.locator("tbody td:nth-child(2)").all_inner_texts()
        assert halves == sorted(halves, reverse=True)
        assert len(set(halves)) == 2


def test_names_are_shown_and_never_run(browser, study_page):
    with Visit(browser, study_page, awaited="#table-0 svg") as visit:
        assert visit.page.evaluate("window.hacked") is None
        assert visit.page.query_selector("main img:not([src^='data:'])") is None
        assert visit.page.eval_on_selector(".picture img", "img => img.naturalWidth") == 1
        assert " ".join(HOSTILE.split()) in " ".join(visit.text("#table-0 h2").split())
        assert visit.complaints == []


def test_a_printed_page_has_all_that_is_folded(browser, study_page):
    with Visit(browser, study_page, awaited="#table-0 svg") as visit:
        visit.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert visit.page.evaluate("[...document.querySelectorAll('details')].every(one => one.open)")
        assert visit.page.pdf().startswith(b"%PDF")
