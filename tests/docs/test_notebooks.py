"""The notebooks run from top to bottom, and are kept without what they printed."""

import json
from pathlib import Path

import pytest
from support.pages import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def cells(notebook: Path) -> list[dict]:
    return [
        cell
        for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        if cell["cell_type"] == "code"
    ]


@pytest.mark.trains
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_from_top_to_bottom(notebook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "notebook"}
    for cell in cells(notebook):
        exec(compile("".join(cell["source"]), f"{notebook.name}: {cell['id']}", "exec"), namespace)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_kept_without_outputs(notebook):
    assert [cell["id"] for cell in cells(notebook) if cell["outputs"] or cell["execution_count"]] == []
