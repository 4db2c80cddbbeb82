"""The dispatch centre: its rules against ones written again in plain Python, its log against its seed."""

import collections
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow.parquet
import pytest

from aetdice import InputError, TabularMOMDP, load_dataset
from aetdice.datasets import environment_of
from aetdice.envs import Dispatch
from aetdice.envs.dispatch import LOG, collect_dispatch, log_table
from aetdice.envs.dispatch.__main__ import main

NAMES = ("centre", "north", "south")
NEXT = {
    ("north", "centre"): "centre", ("north", "south"): "centre", ("centre", "north"): "north",
    ("centre", "south"): "south", ("south", "centre"): "centre", ("south", "north"): "centre",
}  # fmt: skip
CALLS = {"centre": 0.4, "north": 0.25, "south": 0.25, None: 0.1}


def rules(waiting: dict, van: str, sound: bool, left: int, action: str) -> dict:
    """The probability of every (waiting, van, sound, left, served) that may follow."""
    served, courses = None, [(1.0, van, sound)]
    goal = action.removeprefix("go-")
    if not sound:
        courses = [(0.6, van, True), (0.4, van, False)] if action == "repair" else courses
    elif goal == van:
        served = van if waiting[van] else None
    elif action != "repair":
        there = NEXT[van, goal]
        courses = [(0.92, there, True), (0.08, there, False)]
    found = collections.Counter()
    for (chance, place, runs), (caller, comes) in itertools.product(courses, CALLS.items()):
        queues = tuple(min(waiting[d] - (d == served) + (d == caller), 2) for d in NAMES)
        found[queues, place, runs, left - 1, served] += chance * comes
    return found


def test_tables_are_the_rules():
    env = Dispatch()
    tables = env.tables()
    actions = ("go-centre", "go-north", "go-south", "repair")
    for state, seen in enumerate(tables.observations):
        if seen[5] == 0:
            continue
        waiting, van, sound = dict(zip(NAMES, seen[:3], strict=True)), NAMES[seen[3]], bool(seen[4])
        for number, action in enumerate(actions):
            found = collections.Counter()
            for k, chance in enumerate(tables.probability[state, number]):
                after = tables.observations[tables.next_state[state, number, k]]
                reward = tables.reward[state, number, k]
                served = NAMES[reward.argmax()] if reward.any() else None
                assert reward.sum() in (0, 1)
                assert tables.ends[state, number, k] == (after[5] == 0)
                found[tuple(after[:3]), NAMES[after[3]], bool(after[4]), int(after[5]), served] += chance
            wanted = rules(waiting, van, sound, int(seen[5]), action)
            assert {key: p for key, p in found.items() if p} == pytest.approx(dict(wanted))


def test_shifts_begin_alike_and_differ_in_length():
    env = Dispatch(horizon=9, shortest=7)
    states, counts = np.unique(
        jax.vmap(env.reset)(jax.random.split(jax.random.key(0), 300)), return_counts=True
    )
    momdp = TabularMOMDP.from_environment(env)
    np.testing.assert_array_equal(states, np.flatnonzero(momdp.initial))
    np.testing.assert_allclose(momdp.initial[states], 1 / 3)
    assert counts.min() > 70  # 4 σ below 100
    assert momdp.observations[states].tolist() == [[1, 1, 1, 0, 1, left] for left in (7, 8, 9)]


def test_the_log_that_ships_is_the_one_of_its_seed(tmp_path, capsys):
    assert LOG.stat().st_size < 300_000
    table = pyarrow.parquet.read_table(LOG)
    assert table.equals(log_table(collect_dispatch(Dispatch(), seed=0)))
    main([str(tmp_path / "few.parquet"), "--shifts", "5", "--seed", "3"])
    few = pyarrow.parquet.read_table(tmp_path / "few.parquet")
    assert few.equals(log_table(collect_dispatch(Dispatch(), 5, seed=3)))
    assert few.column_names == table.column_names
    with pytest.raises(SystemExit) as exit_:
        main([str(tmp_path / "none.parquet"), "--shifts", "0"])
    assert exit_.value.code == 2
    assert capsys.readouterr().err == "error: at least one episode is needed, not 0\n"


def test_the_log_is_read_as_the_environment_s_own_data():
    """Words are numbered as the environment numbers them, so a policy of the file acts in the simulator."""
    read, own = load_dataset(LOG), load_dataset("dispatch")
    assert read.ends == "shift"
    assert read.objectives == own.objectives == NAMES
    assert read.coding.actions == (("go-centre",), ("go-north",), ("go-south",), ("repair",))
    for part in ("actions", "rewards", "lengths"):
        np.testing.assert_array_equal(getattr(read, part), getattr(own, part))
    last = own.starts + own.lengths + np.arange(len(own))
    seen = np.delete(own.observations, last, axis=0)
    np.testing.assert_array_equal(np.delete(read.observations, last, axis=0), seen)
    np.testing.assert_array_equal(own.observations[last][:, 5], 0)
    assert sorted(set(own.lengths)) == [8, 9, 10, 11, 12]
    assert environment_of(own.origin) == Dispatch()


def test_what_cannot_be_is_refused():
    for arguments, words in (
        ({"horizon": 5}, "shifts of 8 to 5 steps"),
        ({"calls": (0.5, 0.5)}, "calls needs 3 probabilities"),
        ({"calls": (0.5, 0.5, 0.5)}, "sum to at most 1"),
        ({"calls": (float("nan"), 0.5, 0.5)}, "sum to at most 1"),
        ({"breakdown": 1.5}, "breakdown is a probability, not 1.5"),
    ):
        with pytest.raises(InputError, match=words):
            Dispatch(**arguments)
    with pytest.raises(InputError, match="unknown quality 'expert'; known: mixed"):
        load_dataset("dispatch", quality="expert")


def test_text_shows_the_street():
    env = Dispatch()
    assert env.text(jnp.asarray(env.initial_state)) == "north 1 - centre 1 [van] - south 1; 12 steps left\n"
    broken = np.ravel_multi_index((0, 2, 1, 1, 0, 3), env.observation_sizes)
    assert env.text(jnp.asarray(broken)) == "north 2 [van!] - centre 0 - south 1; 3 steps left\n"
