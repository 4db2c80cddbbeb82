"""What pages name exists: other pages and their headings, files, settings; and the README stays short."""

import re
import tomllib

import pytest
from support.pages import EXECUTED, PAGES, ROOT, prose_of, text_of
from support.settings_table import settings_table

LINK = re.compile(r"\]\(([^)\s]+)\)")
PATH = re.compile(r"`((?:src|tests|docs|experiments|benchmarks)/[\w./-]+)`")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
PRIVATE = (
    "lesson", "lessons", "ticket", "tickets", "lottery", "dart", "darts", "polish", "polished", "foresight",
    "stretches", "keeper", "remedy", "remedies", "preparation", "scene", "scenes", "waves", "faltering",
    "whim", "whims",
)  # fmt: skip
"""Words that this project once had to itself; the field has better ones."""


def anchor(heading: str) -> str:
    """As GitHub makes it: lower case, punctuation gone, a hyphen for each space."""
    plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", lambda found: found.group(1) or "", heading)
    return re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_a_file_and_a_heading_in_it(page):
    lost = []
    for target in LINK.findall(text_of(page)):
        if "://" in target:
            continue
        name, _, fragment = target.partition("#")
        path = (ROOT / page).parent / name if name else ROOT / page
        if not path.exists():
            lost.append(target)
        elif fragment:
            headings = map(anchor, HEADING.findall(prose_of(path.resolve().relative_to(ROOT).as_posix())))
            lost += [] if fragment in headings else [target]
    assert lost == []


@pytest.mark.parametrize("page", EXECUTED)
def test_files_that_a_page_names_exist(page):
    assert [name for name in PATH.findall(text_of(page)) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", EXECUTED)
def test_pages_use_the_words_of_the_field(page):
    words = set(re.findall(r"[a-z]+", prose_of(page).lower()))
    assert words.intersection(PRIVATE) == set()


def test_readme_is_short_and_names_what_a_newcomer_runs():
    readme = text_of("README.md")
    assert len(readme.splitlines()) <= 160
    assert all(name in readme for name in ("make demo", "make test", "docs/figures/fair-taxi.png"))


def test_table_of_settings_is_the_configuration():
    page = text_of("docs/settings.md")
    assert [row for row in settings_table() if row not in page] == []
    assert len(
        re.findall(r"^\| `(?:network|reward|dual|iql|extraction|trainer|ablation)\.", page, re.MULTILINE)
    ) == len(settings_table())


def test_release_is_the_same_everywhere():
    version = tomllib.loads(text_of("pyproject.toml"))["project"]["version"]
    assert f"\nversion: {version}\n" in text_of("CITATION.cff")
    released = re.search(
        r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$", text_of("CHANGELOG.md"), re.MULTILINE
    )
    assert released is not None
    assert released.group(1) == version
    assert f'date-released: "{released.group(2)}"' in text_of("CITATION.cff")
