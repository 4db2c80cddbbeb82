"""A search draws what it is told to, and the same on every engine, however often it is interrupted."""

import pytest
from support.sweeps import LosingEngine, lasting, planned, run_inline

from aetdice import InputError
from aetdice.progress import listening
from aetdice.sweeps.plan import begin
from aetdice.sweeps.sweeping import run_on

pytest.importorskip("optuna", reason="Optuna is not installed: pip install 'aetdice[search]'")

pytestmark = [pytest.mark.trains, pytest.mark.filterwarnings("ignore")]  # Optuna's own warnings are not ours
SEARCH = {
    "search": "optuna",
    "trials": 4,
    "batch": 3,
    "algorithms": [
        {
            "algorithm": "bc",
            "learning_rate": {"low": 1e-4, "high": 1e-2, "log": True},
            "network.hidden": [[8], [4]],
        }
    ],
}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """A search by scores that is done, and its folder."""
    folder = tmp_path_factory.mktemp("search")
    return run_inline(planned(**SEARCH, criterion="environment"), folder), folder


def test_every_trial_is_in_the_table_and_one_is_selected(found):
    rows = found[0].rows
    assert len(rows) == 4
    assert len({row["learning_rate"] for row in rows}) == 4
    assert all(1e-4 <= row["learning_rate"] <= 1e-2 for row in rows)
    assert all(row["settings"]["network.hidden"] in ([8], [4]) for row in rows)
    assert sum(row["selected"] for row in rows) == 1


def test_what_is_drawn_again_is_not_trained_again(tmp_path):
    """Four trials of two choices: each is in the table once, and all members are told to be done."""
    choices = {"algorithm": "bc", "network.hidden": [[8], [4]]}
    plan, engine, told = planned(**{**SEARCH, "algorithms": [choices]}), LosingEngine(tmp_path), []
    begin(plan, tmp_path)
    with listening(lambda stage, step, total, metrics: told.append((stage, step, total))):
        rows = run_on(engine, plan, tmp_path).rows
    assert sorted(row["settings"]["network.hidden"] for row in rows) == [[4], [8]]
    assert sorted(job.partition("-")[0] for job in engine.submitted) == ["000", "001"]
    assert told[-2:] == [("members", 4, 4), ("% of all work", 100, 100)]


def test_a_search_goes_on_where_it_stopped(found, tmp_path):
    plan = planned(**SEARCH, criterion="environment")
    engine = LosingEngine(found[1])
    assert lasting(run_on(engine, plan, found[1]).rows) == lasting(found[0].rows)
    assert engine.submitted == []
    assert lasting(run_inline(plan, tmp_path, losing={1: 1}).rows) == lasting(found[0].rows)


def test_a_search_says_what_its_criterion_needs_before_anything_is_trained(tmp_path):
    with pytest.raises(InputError, match="needs episodes of taxi that are kept for it"):
        planned(**SEARCH, criterion="estimate")
    log = tmp_path / "log.csv"
    log.write_text("episode,x,action,r0,r1\n" + "".join(f"{i},0.{i},{i % 2},0.5,1\n" for i in range(8)))
    with pytest.raises(InputError, match="needs an environment; the log is a log"):
        planned(**SEARCH, criterion="environment", datasets=[{"data": str(log), "name": "the log"}])


def test_a_search_with_another_horizon_is_another_search(tmp_path):
    (tmp_path / "log.csv").write_text("episode,x,action,r0,r1\n0,0.5,0,0.5,1\n1,0.1,1,0.5,2\n")
    log = {"data": str(tmp_path / "log.csv"), "ends": "shift"}
    plans = [planned(**SEARCH, datasets=[{**log, "horizon": horizon}]) for horizon in (2, 3)]
    begin(plans[0], tmp_path / "sweep")
    with pytest.raises(InputError, match="holds another sweep, different in datasets"):
        begin(plans[1], tmp_path / "sweep")


def test_a_search_says_how_much_it_will_train():
    assert planned(**SEARCH, seeds=[0, 1]).remarks == [
        "a search of 8 members, whose jobs are made as they are drawn"
    ]


def test_both_ends_of_a_range_are_checked_before_anything_is_trained():
    wrong = {"algorithm": "aetdice", "beta": {"low": 0, "high": 1}}
    with pytest.raises(InputError, match="beta must be positive"):
        planned(**{**SEARCH, "algorithms": [wrong]})
