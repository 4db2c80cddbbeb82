"""Runs beside each other by their estimates alone: which one to take, or cloning."""

import json
from dataclasses import replace

import pytest
from support.problems import random_tables, uniform_episodes
from support.training import TINY, tiny_run

from aetdice import InputError, esr, select
from aetdice.learning.comparison import Offer, recommend
from aetdice.report.tables import selection_table


def test_the_largest_lower_bound_above_cloning_is_taken():
    sure, bold = Offer("sure", 2.0, 1.9, "supported"), Offer("bold", 2.5, 1.5, "extrapolating")
    wild = Offer("wild", 9.0, 8.0, "do not trust")
    assert recommend([bold, sure, wild], 1.0).chosen == 1
    assert recommend([bold, wild], 1.0).chosen == 0
    assert recommend([wild], 1.0).chosen is None
    nothing = recommend([bold, sure], 1.95)
    assert nothing.chosen is None
    assert "nothing beats cloning with confidence" in nothing.words


@pytest.fixture(scope="module")
def runs():
    data = uniform_episodes(random_tables(2, horizon=3).momdp(), 300, 0)
    config = TINY.adapted({"trainer.report": 0.2})
    return [tiny_run(data=data, config=config, beta=beta) for beta in (1e9, 0.05)], data


@pytest.mark.trains
def test_runs_are_compared_on_the_same_episodes(runs):
    both, data = runs
    found = select(both, data)
    record = json.loads(json.dumps(found.record()))
    assert record["selected_with"] == "offline"
    assert [each["estimate"]["policy"]["episodes"] for each in record["candidates"]] == [300, 300]
    lows = [each["estimate"]["policy"]["low"] for each in record["candidates"]]
    clones = max(each["estimate"]["twin"]["value"] for each in record["candidates"])
    best = lows.index(max(lows))
    assert found.recommendation.chosen == (best if max(lows) > clones else None)
    assert found.policy in (both[best].policy, both[0].twin)
    assert selection_table(record).renderables[0].row_count == 2


@pytest.mark.trains
def test_what_cannot_be_compared_is_refused(runs):
    (one, other), data = runs
    with pytest.raises(InputError, match="nothing to select from"):
        select([], data)
    altered = replace(other, config=other.config.adapted({"trainer.report": 0.5}))
    with pytest.raises(InputError, match="did not keep the same episodes"):
        select([one, altered], data)
    fair = replace(other, members=[replace(other.selected, objective=esr())])
    with pytest.raises(InputError, match="compared under one objective"):
        select([one, fair], data)
