"""Datasets by D4MORL's protocol: preferences, qualities, and what is stored."""

import hashlib

import numpy as np
import pytest
from scipy import stats
from support.behaviours import tiny_behaviour

from aetdice.behaviours import collect_body
from aetdice.behaviours import collection as protocol
from aetdice.behaviours.behaviour import dominated
from aetdice.cli import main
from aetdice.data import load_episodes, load_facts, transform_episodes
from aetdice.data.episodes import Episodes
from aetdice.data.transforms import SpeedAndEffort
from aetdice.envs.mujoco import BODIES, BatchedBody

ARC = [(1000.0, 1000.0), (900.0, 1350.0), (500.0, 1500.0)]
"""Returns whose normalised first entries are .5, .4 and .25."""


@pytest.fixture
def policy():
    return tiny_behaviour()


def digest(episodes):
    found = hashlib.sha256()
    for episode in episodes:
        for part in (episode.observations, episode.actions, episode.rewards):
            found.update(np.ascontiguousarray(part).tobytes())
    return found.hexdigest()


@pytest.fixture
def short(monkeypatch):
    """Episodes of twenty steps, four at a time."""
    monkeypatch.setattr(protocol, "AT_ONCE", 4)
    monkeypatch.setattr(protocol, "BatchedBody", lambda *a, **k: BatchedBody(*a, **{**k, "horizon": 20}))


# Preferences.


def test_preferences_outside_the_normalised_returns_are_rejected():
    policy = tiny_behaviour(returns=ARC)
    drawn = protocol.draw_targets(policy, 4000, np.random.default_rng(0))
    assert drawn.shape == (4000, 2)
    assert (drawn[:, 0].min(), drawn[:, 0].max()) == pytest.approx((0.25, 0.5), abs=1e-3)
    assert stats.kstest(drawn[:, 0], stats.uniform(0.25, 0.25).cdf).pvalue > 0.01


def test_the_nearest_normalised_return_acts():
    policy = tiny_behaviour(returns=ARC)
    targets = np.array([[0.26, 0.74], [0.32, 0.68], [0.33, 0.67], [0.44, 0.56], [0.46, 0.54]])
    acting = protocol.acting_preferences(policy, targets)
    np.testing.assert_array_equal(acting[:, 0], [0, 0, 0.5, 0.5, 1])


def test_dominated_preferences_never_act():
    policy = tiny_behaviour(returns=[(1000, 0), (300, 300), (0, 1000), (600, 600), (590, 595)])
    np.testing.assert_array_equal(dominated(policy.returns), [False, True, False, False, True])
    np.testing.assert_array_equal(policy.front(), [0, 2, 3, 4])  # the last is as good, within the slack
    targets = np.random.default_rng(0).dirichlet(np.ones(2), 100)
    assert 0.75 not in protocol.acting_preferences(policy, targets)[:, 0]


# Qualities.


def test_expert_acts_as_trained(policy, short):
    """Each stored action is the clipped deterministic one of a single preference of the card."""
    for episode in collect_body("halfcheetah", "expert", 6, behaviour=policy):
        own = [policy.act(episode.observations[:-1], w).clip(-1, 1) for w in policy.preferences]
        assert min(np.abs(actions - episode.actions).max() for actions in own) < 1e-5


@pytest.mark.parametrize("name", ["walker2d", "swimmer"])
def test_amateur_s_noise(name):
    body, n = BODIES[name], 40_000
    actions = np.full((n, body.action_size), 0.5)
    altered = protocol.amateur(body, n, np.random.default_rng(0))(actions)
    ratio = altered / actions
    common = np.all(ratio == ratio[:, :1], axis=1)
    scaled = ratio[common & (ratio[:, 0] != 1), 0]
    kept = np.all(altered == actions, axis=1)
    if name == "swimmer":
        assert not kept.any()
        random = altered[~common]
        assert len(random) / n == pytest.approx(0.35, abs=0.01)
        assert stats.kstest(random.ravel(), stats.uniform(-1, 2).cdf).pvalue > 0.01
    else:
        assert common.all()
        assert kept.mean() == pytest.approx(0.35, abs=0.01)
    assert len(scaled) / n == pytest.approx(0.65, abs=0.01)
    assert stats.kstest(scaled, stats.uniform(0.35, 1.3).cdf).pvalue > 0.01


def test_a_quarter_of_the_faltering_are_weak_all_along():
    body, n = BODIES["walker2d"], 40_000
    alter = protocol.unstable(body, n, np.random.default_rng(0))
    first, later = alter(np.ones((n, 6)))[:, 0], alter(np.ones((n, 6)))[:, 0]
    assert np.all((first == 1) | ((first > 0.3 * 0.35) & (first < 1.65)))
    kept_twice = (first == later) & (first != 1)  # unchanged by chance, so its strength is what is seen
    assert stats.kstest(first[kept_twice], stats.uniform(0.3, 0.3).cdf).pvalue > 0.01
    assert kept_twice.mean() == pytest.approx(0.25 * 0.35**2, abs=0.005)


@pytest.mark.parametrize("quality", protocol.QUALITIES)
def test_stored_actions_are_clipped_and_are_the_ones_stepped(quality, short):
    policy = tiny_behaviour("hopper", scale=3.0)  # most actions are far outside
    limits = np.array(BODIES["hopper"].action_limits)
    for episode in collect_body("hopper", quality, 5, behaviour=policy):
        assert episode.actions.dtype == episode.observations.dtype == np.float32
        assert np.all(np.abs(episode.actions) <= limits)
        assert np.any(np.abs(episode.actions) == limits)
        assert len(episode.observations) == len(episode.actions) + 1 == len(episode.rewards) + 1


def test_effort_in_the_store_is_the_action_s_to_the_last_digits(policy, short):
    episodes = Episodes.from_list(
        collect_body("halfcheetah", "amateur", 4, behaviour=policy), ("speed", "energy")
    )
    effort = transform_episodes(episodes, SpeedAndEffort()).rewards[:, 1]
    squares = np.sum(episodes.actions.astype(np.float64) ** 2, axis=1)
    np.testing.assert_allclose(effort, squares, rtol=0, atol=1e-12)


def test_falls_end_episodes_and_the_horizon_truncates_the_others(short):
    found = list(collect_body("walker2d", "amateur", 8, behaviour=tiny_behaviour("walker2d", scale=5.0)))
    assert all(episode.terminated != episode.truncated for episode in found)
    assert all(len(episode.rewards) == 20 for episode in found if episode.truncated)
    for episode in found:
        assert np.all(np.any(episode.rewards != 0, axis=1))  # nothing after the fall


# Seeds.


@pytest.mark.parametrize("quality", protocol.QUALITIES)
def test_equal_seeds_give_equal_data_and_the_first_episodes_do_not_depend_on_how_many(quality, policy, short):
    ten = list(collect_body("halfcheetah", quality, 10, 3, policy, threads=2))
    assert len(ten) == 10
    assert digest(ten) == digest(collect_body("halfcheetah", quality, 10, 3, policy, threads=1))
    assert digest(ten[:6]) == digest(collect_body("halfcheetah", quality, 6, 3, policy))
    assert digest(ten) != digest(collect_body("halfcheetah", quality, 10, 4, policy))


# The command line.


def test_collect_writes_a_store_with_its_facts(policy, short, tmp_path, capsys):
    policy.save(tmp_path / "policy.npz")
    store = tmp_path / "store"
    main(
        f"collect halfcheetah --quality amateur --trajectories 5 --seed 2 --out {store} "
        f"--behaviour {tmp_path / 'policy.npz'}".split()
    )
    shown = capsys.readouterr().out
    assert "speed" in shown
    assert "100 steps in" in shown
    episodes, facts = load_episodes(store), load_facts(store)
    assert (len(episodes), episodes.objectives) == (5, ("speed", "energy"))
    assert (facts["body"], facts["quality"], facts["seed"]) == ("halfcheetah", "amateur", 2)
    assert facts["behaviour"]["sha256"] == policy.sha256
    assert "mujoco" in facts["versions"]
    assert digest(episodes[i] for i in range(5)) == digest(
        collect_body("halfcheetah", "amateur", 5, 2, policy)
    )
