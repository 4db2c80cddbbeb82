"""Augmentation: transformed rewards telescope, accrued rewards chain, weights conserve mass."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aetdice.data import Episode, Episodes, accrue, augment, censoring_weights
from aetdice.objectives import UTILITIES, Identity, in_float64

HORIZON = 8
ENDS = {"terminated": (True, False), "cut": (False, True), "both": (True, True)}


def build(lengths, ends, seed=0):
    rng = np.random.default_rng(seed)
    return Episodes.from_list(
        Episode(rng.normal(size=(n + 1, 1)), np.zeros(n, int), rng.normal(2, 3, (n, 2)), *ENDS[end])
        for n, end in zip(lengths, ends, strict=True)
    )


@st.composite
def datasets(draw, ends=tuple(ENDS)):
    """Arguments of `build`: 12 steps in all (programs compile once) and one episode up to the horizon."""
    cuts = sorted(draw(st.sets(st.integers(1, 11), min_size=1)) | {6})
    lengths = [*np.diff([0, *cuts, 12]), HORIZON]
    kinds = [*draw(st.tuples(*[st.sampled_from(ends)] * (len(lengths) - 1))), "cut"]
    order = draw(st.permutations(range(len(lengths))))
    return [lengths[i] for i in order], [kinds[i] for i in order], draw(st.integers(0, 99))


def mass_by_time(episodes, weights):
    """c_t, and how much of it terminates at t."""
    time = np.concatenate([np.arange(n) for n in episodes.lengths])
    last = np.cumsum(episodes.lengths) - 1
    mass = np.bincount(time, weights[time], HORIZON)
    ended = np.bincount(time[last], weights[time[last]] * episodes.terminated, HORIZON)
    return mass, ended


@pytest.mark.parametrize("make", UTILITIES.values(), ids=UTILITIES.keys())
@given(data=datasets())
@settings(max_examples=8)
def test_transformed_rewards_of_an_episode_sum_to_what_its_return_is_worth(make, data):
    episodes = build(*data)
    found = augment(episodes, make(), HORIZON)
    total = found.zero_utility + np.add.reduceat(found.transformed_rewards, episodes.starts, axis=0)
    worth = np.stack([in_float64(make())(returns) for returns in episodes.returns])
    np.testing.assert_allclose(total, worth, rtol=1e-9, atol=1e-9)


@given(data=datasets())
def test_accrued_reward_starts_at_zero_and_chains_from_step_to_step(data):
    episodes = build(*data)
    before, after = accrue(episodes)
    first = np.isin(np.arange(episodes.steps), episodes.starts)
    np.testing.assert_array_equal(before[first], 0)
    np.testing.assert_array_equal(before[~first], after[:-1][~first[1:]])
    np.testing.assert_allclose(after - before, episodes.rewards, atol=1e-12)


@given(data=datasets())
@settings(max_examples=15)
def test_augmented_steps_are_the_stored_ones_in_order(data):
    episodes = build(*data)
    found = augment(episodes, Identity(), HORIZON)
    np.testing.assert_array_equal(found.time, np.concatenate([np.arange(n) for n in episodes.lengths]))
    np.testing.assert_array_equal(found.observations, np.concatenate([e.observations[:-1] for e in episodes]))
    np.testing.assert_array_equal(
        found.next_observations, np.concatenate([e.observations[1:] for e in episodes])
    )
    np.testing.assert_array_equal(found.time[found.initial], 0)
    assert len(found.initial) == len(episodes)
    np.testing.assert_array_equal(found.weights, censoring_weights(episodes, HORIZON)[found.time])


@given(data=datasets())
@settings(max_examples=15)
def test_nothing_follows_exactly_after_termination_and_at_the_horizon(data):
    episodes = build(*data)
    found = augment(episodes, Identity(), HORIZON)
    last = np.isin(np.arange(episodes.steps), episodes.starts + episodes.lengths - 1)
    ended = np.repeat(episodes.terminated, episodes.lengths) & last
    np.testing.assert_array_equal(found.terminated, ended)
    np.testing.assert_array_equal(found.bootstraps, ~ended & (found.time != HORIZON - 1))


@given(data=datasets(ends=("terminated", "both")))
def test_without_cuts_every_step_counts_one_over_the_number_of_episodes(data):
    episodes = build(*data)
    np.testing.assert_array_equal(censoring_weights(episodes, HORIZON), np.full(HORIZON, 1 / len(episodes)))


@given(data=datasets(ends=("cut",)))
def test_without_terminations_steps_count_one_over_the_episodes_not_yet_cut(data):
    episodes = build(*data)
    not_yet_cut = [np.sum(episodes.lengths > t) for t in range(HORIZON)]
    np.testing.assert_allclose(censoring_weights(episodes, HORIZON), 1 / np.array(not_yet_cut), rtol=1e-12)


@given(data=datasets())
def test_mass_leaves_by_termination_only_for_any_mix_of_ends(data):
    episodes = build(*data)
    mass, ended = mass_by_time(episodes, censoring_weights(episodes, HORIZON))
    np.testing.assert_allclose(mass[0], 1, rtol=1e-12)
    np.testing.assert_allclose(mass[1:], (mass - ended)[:-1], rtol=1e-12, atol=1e-12)


def test_weights_of_a_small_example_by_hand():
    episodes = build([1, 2, 2, 3], ["cut", "terminated", "cut", "cut"])
    # at t=1 one of four is cut: 1/3; at t=2 one of the two that go on is: 1/3 / (1/2)
    np.testing.assert_allclose(censoring_weights(episodes, 3), [1 / 4, 1 / 3, 2 / 3], rtol=1e-12)


def test_an_end_at_the_horizon_is_not_a_cut():
    episodes = build([3, 3], ["cut", "terminated"])
    np.testing.assert_array_equal(censoring_weights(episodes, 3), [1 / 2] * 3)
    assert not augment(episodes, Identity(), 3).bootstraps[2]
    assert augment(episodes, Identity(), 4).bootstraps[2]
