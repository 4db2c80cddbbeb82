"""A budget in minutes takes the longest effort that fits, and a run that was cut off keeps it."""

import math

import pytest
from support.training import Cut, cut_after, tiny_episodes

from aetdice import InputError, TrainingConfig, bsr, esr, train
from aetdice.learning import budget, recipe
from aetdice.learning.budget import LEAST_UPDATES, fitted, policies_of, updates_of
from aetdice.learning.recipe import EFFORTS, Effort
from aetdice.learning.setup import algorithm_for

COSTS = {"quick": 10.0, "standard": 30.0, "thorough": 100.0}


def within(seconds: float, algorithm: str = "aetdice", **settings) -> TrainingConfig:
    config = TrainingConfig().adapted(settings)
    return fitted(seconds, COSTS, EFFORTS, algorithm_for(algorithm, 3, config), config)


@pytest.mark.parametrize(
    ("seconds", "effort"), [(10.0, "quick"), (31.0, "standard"), (99.0, "standard"), (1e9, "thorough")]
)
def test_the_longest_effort_that_fits_is_taken(seconds, effort):
    assert within(seconds) == TrainingConfig().adapted({"trainer.effort": effort})


def test_less_than_a_quick_one_is_a_shorter_one():
    quick = EFFORTS["quick"]
    found = within(5.0)
    assert found.trainer.effort == "quick"
    assert found.extraction.steps == quick.lengths[-1] // 2
    assert found.dual.steps == quick.values // 2
    assert within(1e-6).extraction.steps == LEAST_UPDATES
    by_hand = within(5.0, **{"extraction.steps": 77})
    assert (by_hand.extraction.steps, by_hand.dual.steps) == (77, quick.values // 2)
    assert within(5.0, "esr-iql").dual == TrainingConfig().dual  # which it does not read


def test_longer_efforts_and_more_policies_cost_more():
    ordered = [updates_of(EFFORTS[name], 4, 0) for name in COSTS]
    assert ordered == sorted(ordered)
    assert updates_of(EFFORTS["quick"], 8, 0) == 2 * updates_of(EFFORTS["quick"], 4, 0)
    assert updates_of(EFFORTS["quick"], 4, 3) > updates_of(EFFORTS["quick"], 4, 0)


def test_every_setting_of_every_objective_and_seed_counts():
    two, seeds, none = [esr(), bsr(0.5)], [0, 1, 2], {"beta": None}
    assert policies_of("bc", [esr()], none, [1e-3], [0]) == 2
    assert policies_of("aetdice", two, {"beta": [0.1, 0.2]}, [1e-3, 1e-2], seeds) == 3 * (1 + 2 * 2 * 2)
    assert policies_of("aetdice", two, none, [1e-3], seeds) > policies_of(
        "fairdice", two, none, [1e-3], seeds
    )
    assert policies_of("esr-iql", [esr()], none, [1e-3], [0]) == 1 + 3 * 2


@pytest.mark.parametrize("minutes", [0.0, -1.0, math.nan, math.inf])
def test_minutes_that_are_none_are_refused(minutes):
    with pytest.raises(InputError, match="minutes above 0"):
        train(tiny_episodes(), esr(), minutes=minutes, progress=False)


def test_minutes_and_an_effort_are_one_too_many():
    with pytest.raises(InputError, match="not both"):
        train(tiny_episodes(), esr(), minutes=1.0, effort="quick", progress=False)


@pytest.mark.trains
def test_a_run_within_minutes_goes_on_as_it_began_whatever_the_machine_does_then(tmp_path, monkeypatch):
    monkeypatch.setattr(budget, "TIMED", 5)
    for name in COSTS:
        monkeypatch.setitem(recipe.EFFORTS, name, Effort((40,), 40))
    monkeypatch.setattr(budget, "LEAST_UPDATES", 20)
    monkeypatch.setattr(
        budget, "pace", lambda *_: 1.0
    )  # a second for each update: even quick must be shortened
    settings = {"network.hidden": (8,), "trainer.chunk": 5, "extraction.batch": 16, "dual.batch": 16}
    config = TrainingConfig().adapted(settings)
    own = {"beta": 0.1, "minutes": 1.0, "config": config, "out": tmp_path / "run"}
    with pytest.raises(Cut):
        train(tiny_episodes(), esr(), progress=cut_after(6), **own)
    monkeypatch.setattr(budget, "pace", lambda *_: 1e-9)
    run = train(tiny_episodes(), esr(), progress=False, **own)
    assert run.request["settings"]["trainer"]["effort"] == "quick"
    assert run.request["settings"]["extraction"]["steps"] == 20
    assert run.chosen["extraction.steps"] == 20
