"""Fair-Taxi's rules, by hand and against plain Python."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.problems import drive

from aetdice.envs import FairTaxi

NORTH, SOUTH, EAST, WEST, PICK_UP, DROP_OFF = range(6)
NOTHING, INVALID = (0.0, 0.0), (-1 / 3, -1 / 6)


def step(taxi: FairTaxi, row: int, column: int, passenger: int, action: int):
    """(row, column, passenger) after an action, and the reward."""
    state = jnp.asarray(taxi.state_of(row, column, passenger))
    after, reward, terminated = taxi.transition(state, jnp.asarray(action))
    assert not terminated
    return tuple(taxi.observe(after).tolist()), reward


@pytest.mark.parametrize(
    ("before", "action", "after", "reward"),
    [
        pytest.param((4, 4, 0), NORTH, (3, 4, 0), NOTHING, id="north"),
        pytest.param((4, 4, 0), SOUTH, (5, 4, 0), NOTHING, id="south"),
        pytest.param((4, 4, 1), EAST, (4, 5, 1), NOTHING, id="east-with-a-passenger"),
        pytest.param((4, 4, 2), WEST, (4, 3, 2), NOTHING, id="west-with-a-passenger"),
        pytest.param((0, 3, 0), NORTH, (0, 3, 0), NOTHING, id="clipped-in-the-north"),
        pytest.param((8, 3, 1), SOUTH, (8, 3, 1), NOTHING, id="clipped-in-the-south"),
        pytest.param((3, 8, 0), EAST, (3, 8, 0), NOTHING, id="clipped-in-the-east"),
        pytest.param((3, 0, 2), WEST, (3, 0, 2), NOTHING, id="clipped-in-the-west"),
        pytest.param((0, 0, 0), PICK_UP, (0, 0, 1), NOTHING, id="pick-up-group-0"),
        pytest.param((8, 8, 0), PICK_UP, (8, 8, 2), NOTHING, id="pick-up-group-1"),
        pytest.param((4, 4, 0), PICK_UP, (4, 4, 0), INVALID, id="pick-up-where-nobody-waits"),
        pytest.param((0, 2, 0), PICK_UP, (0, 2, 0), INVALID, id="pick-up-at-a-destination"),
        pytest.param((0, 0, 1), PICK_UP, (0, 0, 1), INVALID, id="pick-up-a-second-passenger"),
        pytest.param((8, 8, 1), PICK_UP, (8, 8, 1), INVALID, id="pick-up-a-passenger-of-the-other-group"),
        pytest.param((0, 2, 1), DROP_OFF, (0, 2, 0), (1.0, 0.0), id="deliver-group-0"),
        pytest.param((8, 6, 2), DROP_OFF, (8, 6, 0), (0.0, 0.5), id="deliver-group-1"),
        pytest.param((0, 2, 0), DROP_OFF, (0, 2, 0), INVALID, id="drop-off-nobody"),
        pytest.param((8, 6, 1), DROP_OFF, (8, 6, 1), INVALID, id="drop-off-the-wrong-passenger"),
        pytest.param((4, 4, 1), DROP_OFF, (4, 4, 1), INVALID, id="drop-off-on-the-way"),
        pytest.param((0, 0, 1), DROP_OFF, (0, 0, 1), INVALID, id="drop-off-where-picked-up"),
    ],
)
def test_rule(before, action, after, reward):
    found, gained = step(FairTaxi(), *before, action)
    assert found == after
    np.testing.assert_allclose(gained, reward, rtol=1e-6)


def test_starts_empty_in_the_starting_cell():
    taxi = FairTaxi(start=(2, 7))
    assert taxi.observe(taxi.reset(jax.random.key(0))).tolist() == [2, 7, 0]


@pytest.mark.parametrize("scale", [1.0, 30.0, 60.0])
def test_scale_divides_every_reward(scale):
    taxi = FairTaxi(scale=scale)
    np.testing.assert_allclose(step(taxi, 0, 2, 1, DROP_OFF)[1], [60 / scale, 0], rtol=1e-6)
    np.testing.assert_allclose(step(taxi, 4, 4, 0, DROP_OFF)[1], [-20 / scale, -10 / scale], rtol=1e-6)


def test_group_0_counts_double_by_default_whatever_the_number_of_groups():
    taxi = FairTaxi(origins=((0, 0), (1, 1), (2, 2)), destinations=((0, 1), (1, 2), (2, 3)))
    assert taxi.deliveries == (60.0, 30.0, 30.0)
    assert taxi.penalties == (-20.0, -10.0, -10.0)
    assert taxi.objectives == ("group0", "group1", "group2")


@pytest.mark.parametrize(
    "taxi",
    [
        FairTaxi(),
        FairTaxi(size=3, origins=((1, 1),), destinations=((1, 1),), start=(0, 0)),
        FairTaxi(
            size=4,
            origins=((0, 0), (3, 3), (2, 1)),
            destinations=((3, 3), (0, 0), (0, 0)),
            start=(1, 1),
            deliveries=(1.0, 2.0, 3.0),
            penalties=(-1.0, 0.0, 0.5),
            scale=4.0,
        ),
    ],
    ids=["default", "one-cell-trip", "crossed-trips"],
)
def test_every_state_and_action_follows_the_rules_in_plain_python(taxi):
    states = np.arange(taxi.states)
    observations = np.asarray(jax.jit(jax.vmap(taxi.observe))(states)).tolist()
    transition = jax.jit(jax.vmap(jax.vmap(taxi.transition, (None, 0)), (0, None)))
    after, reward, terminated = map(np.asarray, transition(states, np.arange(6)))
    assert not terminated.any()
    for state, action in itertools.product(range(taxi.states), range(6)):
        cab, gain = drive(taxi, tuple(observations[state]), action)
        assert after[state, action] == taxi.state_of(*cab)
        np.testing.assert_allclose(reward[state, action], gain, rtol=1e-6)


def test_text_shows_the_taxi_the_groups_and_who_is_on_board():
    taxi = FairTaxi(size=3, origins=((0, 0), (2, 2)), destinations=((0, 2), (2, 0)), start=(1, 1))
    assert taxi.text(jnp.asarray(taxi.state_of(1, 1, 0))) == "A . a\n. T .\nb . B\n"
    assert taxi.text(jnp.asarray(taxi.state_of(1, 1, 2))) == "A . a\n. 1 .\nb . B\n"


def test_picture_shows_who_is_on_board():
    taxi = FairTaxi(size=3, origins=((0, 0), (2, 2)), destinations=((0, 2), (2, 0)), start=(1, 1))
    pictures = [taxi.picture(jnp.asarray(taxi.state_of(1, 1, passenger))) for passenger in range(3)]
    for here, there in itertools.combinations(pictures, 2):
        assert not np.array_equal(here, there)
