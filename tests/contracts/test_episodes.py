"""Episodes: what goes in comes out, ragged and in order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aetdice.data import Episode, Episodes


def make(length, *, seed=0, objectives=2, terminated=False):
    rng = np.random.default_rng(seed)
    return Episode(
        observations=rng.normal(size=(length + 1, 3)),
        actions=rng.integers(0, 4, length),
        rewards=rng.normal(size=(length, objectives)),
        terminated=terminated,
        truncated=not terminated,
    )


ragged = st.lists(st.integers(1, 5), min_size=1, max_size=6).map(
    lambda lengths: [make(length, seed=i, terminated=i % 2 == 0) for i, length in enumerate(lengths)]
)


@given(ragged)
def test_episodes_come_out_as_they_went_in(given_episodes):
    episodes = Episodes.from_list(given_episodes)
    assert len(episodes) == len(given_episodes)
    assert episodes.steps == sum(len(episode.rewards) for episode in given_episodes)
    for found, expected in zip(episodes, given_episodes, strict=True):
        for part, expected_part in zip(found, expected, strict=True):
            np.testing.assert_array_equal(part, expected_part)


@given(ragged)
def test_episodes_are_indexed_from_both_ends(given_episodes):
    episodes = Episodes.from_list(given_episodes)
    for index, expected in enumerate(given_episodes):
        for found in (episodes[index], episodes[index - len(episodes)]):
            np.testing.assert_array_equal(found.rewards, expected.rewards)
            np.testing.assert_array_equal(found.observations, expected.observations)


@given(ragged)
def test_returns_are_the_sums_of_the_rewards(given_episodes):
    expected = [episode.rewards.sum(axis=0) for episode in given_episodes]
    np.testing.assert_allclose(Episodes.from_list(given_episodes).returns, expected, rtol=1e-12, atol=1e-12)


def test_index_beyond_the_last_episode_is_an_index_error():
    episodes = Episodes.from_list([make(2), make(3)])
    for index in (2, -3):
        with pytest.raises(IndexError, match=f"episode {index} of 2"):
            episodes[index]


def test_objectives_are_numbered_unless_named():
    assert Episodes.from_list([make(2, objectives=3)]).objectives == ("r0", "r1", "r2")
    assert Episodes.from_list([make(2)], ["speed", "energy"]).objectives == ("speed", "energy")


def test_plain_lists_and_whole_numbers_become_float64_rewards():
    episodes = Episodes.from_list([Episode([0, 1, 2], [1, 0], [[1, 2], [3, 4]], True, False)])
    assert episodes.rewards.dtype == np.float64
    np.testing.assert_array_equal(episodes.returns, [[4, 6]])


def test_observations_keep_their_type_and_shape():
    images = np.zeros((3, 4, 4), np.uint8)
    episodes = Episodes.from_list([Episode(images, np.zeros((2, 2)), np.zeros((2, 1)), True, True)])
    assert episodes.observations.dtype == np.uint8
    assert episodes.observations.shape == (3, 4, 4)
    assert (episodes[0].terminated, episodes[0].truncated) == (True, True)
