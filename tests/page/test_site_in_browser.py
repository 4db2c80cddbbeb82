"""The site in a real browser: pages fit a phone, ask for nothing, and are accessible; the slider works."""

import subprocess
import sys

import pytest
from support.pages import ROOT
from support.visits import DESKTOP, PHONE, Visit

pytestmark = pytest.mark.slow
PAGES = """
    index tour choosing diagnostics settings gallery mathematics notebooks/own-log api/data appendix/ablations
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    subprocess.run([sys.executable, "-m", "sphinx", "-q", str(ROOT / "docs"), str(folder)], check=True)
    return folder


@pytest.mark.parametrize(("viewport", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")])
@pytest.mark.parametrize("name", PAGES.split())
def test_a_page_fits_asks_for_nothing_and_is_accessible(site, browser, name, viewport, scheme):
    path = site / f"{name}.html"
    with Visit(browser, path, viewport, scheme, awaited="h1") as visit:
        assert visit.complaints == []
        assert [address for address in visit.requests if not address.startswith(site.as_uri())] == []
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
        assert visit.barriers() == []


def test_a_picture_leads_to_itself_and_names_break_after_underscores(site, browser):
    with Visit(browser, site / "appendix" / "pointmaze-trials.html", awaited="h1") as visit:
        broken = visit.page.eval_on_selector_all("wbr", "found => found.length")
        assert broken > 0
    for name in ("index", "gallery"):
        with Visit(browser, site / f"{name}.html", awaited="h1") as visit:
            targets = visit.page.eval_on_selector_all(
                "a.enlarge", "found => found.map(one => [one.href, one.querySelector('img').src])"
            )
            assert targets
            assert all(target == shown for target, shown in targets)


def test_the_slider_over_alpha_moves_what_is_drawn(site, browser):
    with Visit(browser, site / "choosing.html", awaited="#bsr-alpha circle") as visit:
        half = visit.text("#bsr-alpha-words")
        visit.page.focus("#bsr-alpha input")
        visit.page.keyboard.press("Home")
        assert visit.text("#bsr-alpha output") == "0.00 (ESR)"
        assert visit.text("#bsr-alpha-words") != half
        assert "(4, 4)" in visit.text("#bsr-alpha-words")
        visit.page.select_option("#bsr-alpha select", index=1)
        assert "(4, 4)" not in visit.text("#bsr-alpha-words")
        assert visit.complaints == []
