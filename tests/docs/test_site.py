"""The site is complete: every page has its place in it, every public name stands in its reference."""

import re
import subprocess
import sys

import pytest
from support.pages import EXECUTED, ROOT, text_of

sys.path.insert(0, str(ROOT / "docs" / "extensions"))
from public_names import MODULES, homes

TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
API = re.compile(r"^```\{api\} ([\w.]+)$", re.MULTILINE)


def entries(page: str) -> list[str]:
    """What the tables of contents of a page list, as paths in docs."""
    lines = [line for block in TOCTREE.findall(text_of(page)) for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith(":")]


def test_every_page_is_in_the_table_of_contents():
    listed = {f"docs/{entry}.md" for entry in entries("docs/index.md")}
    assert {page for page in EXECUTED if page.startswith("docs/")} - listed == {"docs/index.md"}


def test_every_module_with_public_names_is_in_the_reference():
    documented = [name for page in EXECUTED for name in API.findall(text_of(page))]
    assert sorted(documented) == sorted(MODULES)


@pytest.mark.slow
def test_site_is_built_without_warnings_and_its_index_has_every_public_name(tmp_path):
    command = [sys.executable, "-m", "sphinx", "-W", "-q", str(ROOT / "docs"), str(tmp_path)]
    subprocess.run(command, check=True, timeout=300)
    from sphinx.util.inventory import InventoryFile

    with (tmp_path / "objects.inv").open("rb") as file:
        found = InventoryFile.load(file, "", lambda base, path: path)
    names = {name for kind, entries in found.items() if kind.startswith("py:") for name in entries}
    assert set(homes().values()) - names == set()
