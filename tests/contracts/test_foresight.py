"""What a model of neighbours is wrong about: which numbers rewards depend on, and how far it can see."""

import numpy as np
import pytest
from support.acting import Always

from aetdice import Episode, Episodes
from aetdice.estimation.arrivals import Arrivals
from aetdice.estimation.checks import errors_of_parts
from aetdice.estimation.foresight import Foresight, foresight_of
from aetdice.estimation.neighbour_model import NeighbourModel
from aetdice.estimation.recording import Recording
from aetdice.objectives import bsr

HORIZON = 20


def glides(count: int, slip: float = 0.0, seed: int = 0) -> Episodes:
    """A point is pushed left or right, or by chance the other way, between walls; nearness to a goal pays."""
    rng, episodes = np.random.default_rng(seed), []
    for _ in range(count):
        x, v, frames, rewards = rng.uniform(-0.1, 0.1), 0.0, [], []
        actions = rng.integers(0, 2, HORIZON)
        for action in np.where(rng.random(HORIZON) < slip, 1 - actions, actions):
            frames.append([x, v])
            v += 0.02 * action - 0.01
            x, v = (x + v, v) if abs(x + v) < 0.3 else (np.sign(x) * 0.3, 0.0)
            rewards.append([np.exp(-abs(x - 0.2) / 0.1)])
        frames.append([x, v])
        episodes.append(Episode(np.array(frames, np.float32), actions, np.array(rewards), False, True))
    return Episodes.from_list(episodes)


def test_numbers_that_rewards_do_not_depend_on_are_left_out():
    rng = np.random.default_rng(0)
    arrival, episode = rng.uniform(size=(4_000, 4)), np.repeat(np.arange(200), 20)
    found = Arrivals(arrival, np.exp(-arrival[:, [2]]), episode)
    assert found.numbers == [2]
    two = Arrivals(arrival, arrival[:, [1]] * arrival[:, [3]], episode)
    assert two.numbers == [1, 3]
    rows, far, beside = two.near(arrival[:7])
    np.testing.assert_array_equal(rows[:, 0], np.arange(7))
    np.testing.assert_allclose(np.linalg.norm(beside, axis=2), far, atol=1e-12)


def test_rewards_by_position_are_the_same_at_any_speed():
    model = NeighbourModel(glides(200), HORIZON)
    assert model.pays_arrival
    assert model.arrivals.numbers == [0]
    near, _, _ = model.arrivals.near(np.array([[0.2, 99.0]]) / model.spread)
    np.testing.assert_allclose(model.reward[near], 1, atol=0.05)


def test_what_is_missed_grows_with_distance_and_is_all_beyond_what_was_seen():
    found = foresight_of(NeighbourModel(glides(300), HORIZON), 0)
    assert found is not None
    assert np.all(np.diff(found.distances) >= 0)
    assert np.all(np.diff(found.wrong) >= 0)
    assert 0 <= found.wrong.min() <= found.wrong.max() <= 1
    assert found.missed(np.zeros(3)) < 0.02
    assert found.missed(np.array([np.inf])) == 1.0
    far = 2 * found.distances[-1]
    assert found.missed(np.array([0.0, far])) == pytest.approx((found.wrong[0] + 1) / 2)


def test_the_share_missed_is_that_of_unseen_steps():
    """A model foretells other episodes of the same walker: as much is wrong as was said."""
    model, others = NeighbourModel(glides(100), HORIZON), glides(100, seed=1)
    found = foresight_of(model, 0)
    rows = np.arange(others.steps) + np.repeat(np.arange(len(others)), others.lengths)
    told = model.foretell(others.observations[rows], others.actions, 0)
    moved = (others.observations[rows + 1] - others.observations[rows]) / model.spread
    missed = np.linalg.norm(told.move - moved, axis=1) > np.median(np.linalg.norm(model.move, axis=1)) / 2
    brought = np.linalg.norm(told.reward - others.rewards, axis=1) > model.reward.std() / 2
    assert found.missed(told.distance) == pytest.approx(np.mean(missed | brought), abs=0.02)


def test_chance_is_not_ignorance():
    """With a quarter of the pushes reversed by chance, most of what is wrong is not for lack of data."""
    model = NeighbourModel(glides(300, slip=0.25), HORIZON)
    told = model.foretell(model.state * model.spread, model.episodes.actions, 0)
    wrong = np.linalg.norm(told.move - model.move, axis=1) > np.median(np.linalg.norm(model.move, axis=1)) / 2
    assert foresight_of(model, 0).missed(told.distance) < np.mean(wrong) / 2


def test_too_few_episodes_tell_nothing():
    assert foresight_of(NeighbourModel(glides(8), HORIZON), 0) is None
    assert Foresight(np.array([1.0]), np.array([0.25])).missed(np.array([0.5, 1.0])) == 0.25


def test_quarters_of_a_log_tell_alike_only_where_each_of_them_has_it_all():
    objective, acting, few = bsr(0.0), Always(1), glides(40)
    same = Episodes.joined([glides(1)] * 40)
    spread = []
    for log in (same, few):
        recording = Recording.of(log, objective, HORIZON)
        model = NeighbourModel(recording.episodes, HORIZON)
        found = recording.utilities_of(model.play(acting, 500, 0).returns).mean(axis=0)
        errors = errors_of_parts(model, recording, acting, found, 0)
        assert errors.shape == (4, 1)
        spread.append(float(np.sqrt(np.mean(errors**2))))
    assert spread[0] == pytest.approx(0, abs=1e-9)
    assert spread[1] > 1e-3
