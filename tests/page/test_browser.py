"""Reports in a real browser: they work by keyboard, ask for nothing, and are accessible."""

import json

import pytest
from support.visits import DESKTOP, PHONE, Visit

pytestmark = pytest.mark.trains


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


def test_names_of_a_log_are_shown_and_never_run(browser, logged_page, hostile_log):
    with Visit(browser, logged_page) as visit:
        assert visit.page.evaluate("window.hacked") is None
        assert visit.page.query_selector("img") is None
        assert visit.page.query_selector("main b") is None
        assert all(" ".join(name.split()) in visit.text("#asked") for name in hostile_log.objectives)
        assert visit.complaints == []


def test_a_printed_page_has_the_sections(browser, swept_page):
    with Visit(browser, swept_page) as visit:
        visit.page.emulate_media(media="print")
        assert visit.page.pdf().startswith(b"%PDF")
        assert visit.page.evaluate("getComputedStyle(document.querySelector('nav')).position") == "static"
