"""The tables of the MuJoCo studies are those of the kept results."""

import json

import pytest
from support.pages import ROOT, text_of

from aetdice.studies.score_tables import markdown


@pytest.mark.parametrize("study", ["ant", "walker2d", "cobb-douglas"])
def test_tables_are_those_of_the_kept_results(study):
    page = text_of("docs/mujoco-study.md")
    kept = json.loads((ROOT / "experiments" / "results" / f"{study}.json").read_text(encoding="utf-8"))
    tables = [markdown(table) for table in kept["tables"].values() if table["rows"]]
    assert tables
    assert [table for table in tables if table not in page] == []
