"""Reports in a real browser: they work by keyboard, ask for nothing, and are accessible."""

import json

import pytest
from axe_core_python.sync_playwright import Axe

pytestmark = pytest.mark.trains

DESKTOP, PHONE = {"width": 1200, "height": 900}, {"width": 360, "height": 740}


class Visit:
    """A page that is open, and what it complained about or asked for."""

    def __init__(self, browser, path, viewport=DESKTOP, scheme="light"):
        self.context = browser.new_context(viewport=viewport, color_scheme=scheme)
        self.page = self.context.new_page()
        self.complaints, self.requests = [], []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("#returns svg")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()

    def text(self, selector):
        return self.page.inner_text(selector)

    def drawn(self, section):
        """Where the marks of a section's pictures are."""
        return self.page.eval_on_selector_all(
            f"#{section} svg", "found => found.map(one => one.outerHTML).join('')"
        )

    def rows(self):
        return self.page.eval_on_selector_all("#scores tbody tr", "found => found.map(one => one.className)")


@pytest.mark.parametrize(("viewport", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")])
@pytest.mark.parametrize("kind", ["swept_page", "logged_page"])
def test_a_page_is_whole_quiet_and_accessible(browser, request, kind, viewport, scheme):
    path = request.getfixturevalue(kind)
    with Visit(browser, path, viewport, scheme) as visit:
        assert visit.complaints == []
        assert visit.requests == [path.as_uri()]
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
        found = Axe().run(visit.page)["violations"]
        assert [
            (each["id"], each["impact"]) for each in found if each["impact"] in ("serious", "critical")
        ] == []
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
