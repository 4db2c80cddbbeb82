"""The site is complete: every page has its place in it, every public name stands in its reference."""

import json
import re
import subprocess
import sys

import pytest
from support.pages import EXECUTED, ROOT, text_of

from aetdice.algorithms.dice import METRICS
from aetdice.studies.score_tables import markdown

sys.path.insert(0, str(ROOT / "docs" / "extensions"))
from public_names import MODULES, homes

TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FIGURES = """
    fig:momdp_example fig:momdp_example_app fig:environments nonmarkovian quantile_plot_Taxi fig:behaviors
    fig:taxi_env fig:pointmaze_2obj fig:pointmaze_3obj fig:dataset pointmaze_evaluaton fig:beta_ablation
"""
"""Every label of the paper that stands for a figure."""
API = re.compile(r"^```\{api\} ([\w.]+)$", re.MULTILINE)


def entries(page: str) -> list[str]:
    """What the tables of contents of a page list, as paths in docs."""
    lines = [line for block in TOCTREE.findall(text_of(page)) for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith(":")]


def test_every_page_is_in_the_table_of_contents():
    listed = {f"docs/{entry}.md" for entry in entries("docs/index.md") if "notebooks/" not in entry}
    assert {page for page in EXECUTED if page.startswith("docs/")} - listed == {"docs/index.md"}


def test_every_module_with_public_names_is_in_the_reference():
    documented = [name for page in EXECUTED for name in API.findall(text_of(page))]
    assert sorted(documented) == sorted(MODULES)


@pytest.mark.parametrize("label", FIGURES.split())
def test_every_figure_of_the_paper_is_in_the_gallery(label):
    assert f"`{label}`" in text_of("docs/gallery.md")


@pytest.mark.parametrize("algorithm", ["aetdice", "optidice", "fairdice"])
def test_every_logged_metric_is_explained(algorithm):
    page = text_of(f"docs/algorithms/{algorithm}.md")
    assert [name for name in ("mass_range", *METRICS) if f"| `{name}` |" not in page] == []


@pytest.mark.parametrize("study", ["fair_taxi", "pointmaze-2obj", "pointmaze-3obj"])
def test_tables_beside_the_paper_are_the_kept_ones(study):
    kept = json.loads((ROOT / "experiments" / "results" / f"{study}.json").read_text(encoding="utf-8"))
    rows = markdown(next(iter(kept["tables"].values()))).splitlines()
    page = text_of("docs/reproduction.md")
    assert [row for row in rows if "(" in row and row not in page] == []


@pytest.mark.slow
def test_site_is_built_without_warnings_and_its_index_has_every_public_name(tmp_path):
    command = [sys.executable, "-m", "sphinx", "-W", "-q", str(ROOT / "docs"), str(tmp_path)]
    subprocess.run(command, check=True, timeout=300)
    from sphinx.util.inventory import InventoryFile

    with (tmp_path / "objects.inv").open("rb") as file:
        found = InventoryFile.load(file, "", lambda base, path: path)
    names = {name for kind, entries in found.items() if kind.startswith("py:") for name in entries}
    assert set(homes().values()) - names == set()
