"""Balancing: mass that should be conserved is, after one factor per part that conserves it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aetdice.dice import Discounted, FiniteHorizon
from aetdice.objectives import in_float64

HORIZON, STEPS = 4, 14
TIME = np.array([0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 3, 3])

_balance = in_float64(lambda flow, mass, time, ended: flow.balance(mass, time, ended.astype(mass.dtype)))
_violation = in_float64(
    lambda flow, mass, time, ended: flow.mass_violation(mass, time, ended.astype(mass.dtype))
)


def balance(flow, mass, ended):
    return _balance(flow, mass, TIME, ended)


def violation(flow, mass, ended):
    return _violation(flow, mass, TIME, ended)


flows = st.one_of(st.just(FiniteHorizon(HORIZON)), st.floats(0, 0.99).map(Discounted))


amounts = st.one_of(st.just(0.0), st.floats(1e-6, 10))


@st.composite
def masses(draw):
    """Some mass at every time, and any steps that end, though not all the mass before the last time."""
    mass = np.array(draw(st.lists(amounts, min_size=STEPS, max_size=STEPS)))
    ended = np.array(draw(st.lists(st.booleans(), min_size=STEPS, max_size=STEPS)))
    going_on = np.searchsorted(TIME, range(HORIZON))  # the first step of each time
    mass[going_on] += 0.1
    ended[going_on] = False
    return mass, ended


@given(flow=flows, steps=masses())
def test_balanced_mass_is_conserved(flow, steps):
    mass, ended = steps
    balanced = balance(flow, mass, ended)
    assert violation(flow, balanced, ended) <= 1e-9
    assert np.all(balanced >= 0)
    assert np.array_equal(balanced == 0, mass == 0)


@given(flow=flows, steps=masses())
def test_balancing_again_changes_nothing(flow, steps):
    once = balance(flow, *steps)
    np.testing.assert_allclose(balance(flow, once, steps[1]), once, rtol=1e-9)


@given(steps=masses(), excess=st.floats(1.1, 5), time=st.integers(0, HORIZON - 1))
def test_mass_that_is_conserved_is_left_alone_and_a_factor_of_a_time_step_is_undone(steps, excess, time):
    flow, (mass, ended) = FiniteHorizon(HORIZON), steps
    conserved = balance(flow, mass, ended)
    disturbed = np.where(time == TIME, excess * conserved, conserved)
    assert violation(flow, disturbed, ended) > 1e-6
    np.testing.assert_allclose(balance(flow, disturbed, ended), conserved, rtol=1e-9)


@given(steps=masses(), excess=st.floats(0.1, 5), gamma=st.floats(0, 0.99))
def test_discounted_mass_keeps_its_shares(steps, excess, gamma):
    flow, (mass, ended) = Discounted(gamma), steps
    conserved = balance(flow, mass, ended)
    np.testing.assert_allclose(conserved / conserved.sum(), mass / mass.sum(), rtol=1e-9)
    np.testing.assert_allclose(balance(flow, excess * conserved, ended), conserved, rtol=1e-9)


@pytest.mark.parametrize("flow", [FiniteHorizon(HORIZON), Discounted(0.9)], ids=["finite", "discounted"])
def test_no_mass_stays_no_mass(flow):
    np.testing.assert_array_equal(balance(flow, np.zeros(STEPS), np.zeros(STEPS, bool)), 0)


def test_mass_that_all_terminated_leaves_nothing_for_later():
    mass, ended = np.ones(STEPS), TIME == 1
    balanced = balance(FiniteHorizon(HORIZON), mass, ended)
    assert np.bincount(TIME, balanced) == pytest.approx([1, 1, 0, 0])
