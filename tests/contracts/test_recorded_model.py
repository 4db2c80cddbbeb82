"""A policy in the empirical model of discrete data, against the model computed exactly."""

import numpy as np
import pytest
from support.problems import random_tables, uniform_episodes
from support.training import TINY, tiny_run
from support.untrained import Always

from aetdice import Episode, Episodes, bsr
from aetdice.algorithms import Hints
from aetdice.evaluation.recorded_model import RecordedModel
from aetdice.learning.selection import MODELLED
from aetdice.learning.verdict import judge
from aetdice.objectives import in_float64


def gamble(count: int = 400) -> Episodes:
    """Action 1 pays 3 in a quarter of the cases and ends the episode, action 0 pays 1 and goes on."""
    rng = np.random.default_rng(0)
    episodes = []
    for _ in range(count):
        rewards, actions = [], []
        while not actions or (not actions[-1] and len(actions) < 3):
            actions.append(int(rng.integers(2)))
            rewards.append([1.0 if actions[-1] == 0 else 3.0 * (len(episodes) % 4 == 0)])
        frames = np.zeros((len(actions) + 1, 1), int)
        frames[-1] = actions[-1]
        over = bool(actions[-1])
        episodes.append(Episode(frames, np.array(actions), np.array(rewards), over, not over))
    return Episodes.from_list(episodes)


def test_outcomes_are_as_likely_as_recorded_and_ends_end():
    data = gamble()
    model = RecordedModel(data, 3)
    safe, unknown = model.sample_returns(Always(0), 500, 0)
    np.testing.assert_array_equal(safe, np.full((500, 1), 3.0))
    assert unknown == 0
    bold, _ = model.sample_returns(Always(1), 4_000, 0)
    won = data.rewards[data.actions == 1].mean()
    assert set(np.unique(bold)) == {0.0, 3.0}
    assert bold.mean() == pytest.approx(won, abs=0.08)


def test_an_action_that_was_never_recorded_is_counted():
    data = gamble()
    only = Episodes.from_list([e for e in data if not e.actions[-1]])
    _, unknown = RecordedModel(only, 3).sample_returns(Always(0), 100, 0)
    assert unknown == 0
    model = RecordedModel(only, 3)
    model.actions = 2  # the policy knows of one more
    model.pair = 2 * model.pair  # as many actions, other numbers
    returns, unknown = model.sample_returns(Always(1), 100, 0)
    assert unknown == 1
    np.testing.assert_array_equal(returns, np.full((100, 1), 3.0))


def test_the_clock_is_no_outcome():
    """Ends that are marked as terminated and as truncated are at the horizon, whatever was done."""
    frames, nothing = np.zeros((5, 1), int), np.zeros(4, int)
    data = Episodes.from_list([Episode(frames, nothing, np.ones((4, 1)), True, True)] * 20)
    returns, _ = RecordedModel(data, 4).sample_returns(Always(0), 200, 0)
    np.testing.assert_array_equal(returns, np.full((200, 1), 4.0))


@pytest.mark.trains
def test_the_uniform_policy_attains_in_the_model_what_the_data_did():
    data = uniform_episodes(random_tables(2, horizon=4).momdp(), 2_000, 0)
    run = tiny_run(data=data, beta=[1e9, 0.05], config=TINY.adapted({"extraction.steps": 400}))
    cloned, learned = (member.diagnostics for member in run.members)
    own = float(in_float64(bsr(0.5))(data.returns))
    assert cloned["model_value"] == pytest.approx(own, abs=0.15)
    assert run.rule == MODELLED
    assert run.selections[0].chosen == int(learned["model_value"] > cloned["model_value"])


def test_little_data_is_not_to_be_trusted():
    hints = Hints("a smaller beta", "a larger beta")
    known = {"model_value": 1.0, "data_value": 0.0, "model_unknown": 0.0, "distance_to_twin": 1.0}
    assert judge({**known, "model_uncertainty": 0.05}, hints).trusted
    doubtful = judge({**known, "model_uncertainty": 0.4}, hints)
    assert not doubtful.trusted
    assert "UNCERTAIN by 40% of the gain" in doubtful.words
