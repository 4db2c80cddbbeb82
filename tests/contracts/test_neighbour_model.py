"""Continuous states: a policy is played with what the nearest recorded steps did."""

import dataclasses

import numpy as np
import pytest
from support.acting import Always

from aetdice import Episode, Episodes
from aetdice.estimation.counted_model import CountedModel
from aetdice.estimation.models import model_of
from aetdice.estimation.neighbour_model import NeighbourModel

HORIZON = 20


def walks(count: int, actions: tuple[int, ...] = (0, 1)) -> Episodes:
    """A walker on a line goes 0.1 left or right at random and is paid where it is."""
    rng = np.random.default_rng(0)
    episodes = []
    for _ in range(count):
        action = rng.choice(actions, HORIZON)
        x = rng.uniform(-0.01, 0.01) + np.concatenate([[0.0], np.cumsum(0.2 * action - 0.1)])
        episodes.append(Episode(x[:, None].astype(np.float32), action, x[1:, None], False, True))
    return Episodes.from_list(episodes)


def test_where_there_are_data_a_policy_gets_what_it_would():
    found = NeighbourModel(walks(300), 8).play(Always(1), 50, 0)
    np.testing.assert_allclose(found.returns, 0.1 * 8 * 9 / 2, atol=0.15)
    assert found.unknown < 0.1


def test_continuous_actions_go_as_the_nearest_did():
    """A walker who goes as far as it likes, asked to go 0.03 every time."""
    rng = np.random.default_rng(0)
    episodes = []
    for _ in range(300):
        moves = rng.uniform(-0.1, 0.1, (HORIZON, 1))
        x = np.concatenate([[[0.0]], np.cumsum(moves, axis=0)])
        episodes.append(Episode(x.astype(np.float32), moves, x[1:], False, True))
    found = NeighbourModel(Episodes.from_list(episodes), 8).play(Always(0.03), 50, 0)
    np.testing.assert_allclose(found.returns, 0.03 * 8 * 9 / 2, atol=0.1)
    assert found.unknown == 0


def test_far_from_the_data_it_is_said_to_be_unknown():
    """Nobody was seen to go right for long."""
    assert NeighbourModel(walks(20), HORIZON).play(Always(1), 50, 0).unknown > 0.3


def test_an_action_that_was_never_taken_is_unknown():
    assert NeighbourModel(walks(20, (0,)), HORIZON).play(Always(1), 50, 0).unknown == 1


def test_an_episode_ends_where_recorded_ones_did():
    x = np.arange(4)[:, None] * 0.1
    fall = Episode(x.astype(np.float32), np.zeros(3, int), np.ones((3, 1)), True, False)
    returns = NeighbourModel(Episodes.from_list([fall] * 5), 10).play(Always(0), 7, 0).returns
    np.testing.assert_array_equal(returns, np.full((7, 1), 3.0))


def test_rewards_are_those_of_where_a_step_leads_if_these_foretell_them():
    """A walker is paid for where it is, or for going right."""
    data = walks(300)
    assert NeighbourModel(data, HORIZON).pays_arrival
    paid = dataclasses.replace(data, rewards=data.actions[:, None].astype(float))
    model = NeighbourModel(paid, 5)
    assert not model.pays_arrival
    np.testing.assert_allclose(model.play(Always(1), 20, 0).returns, 5.0)


@pytest.mark.parametrize(
    ("frames", "actions", "kind"),
    [
        (np.zeros((3, 2), int), np.zeros(2, int), CountedModel),
        (np.arange(6).reshape(3, 2), np.zeros(2, int), NeighbourModel),
        (np.zeros((3, 2)), np.zeros(2, int), NeighbourModel),
        (np.zeros((3, 9)), np.zeros(2, int), type(None)),
        (np.zeros((3, 2)), np.zeros((2, 1)), NeighbourModel),
        (np.zeros((3, 8)), np.zeros((2, 1)), type(None)),
        (np.zeros((3, 2)), np.zeros((2, 2), int), type(None)),
    ],
)
def test_which_data_can_be_played_in(frames, actions, kind):
    data = Episodes.from_list([Episode(frames, actions, np.ones((2, 1)), False, True)])
    assert isinstance(model_of(data, 2), kind)
