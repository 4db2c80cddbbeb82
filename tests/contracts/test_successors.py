"""What may follow a state and an action: pooled over a dataset, counted by hand."""

from collections import Counter

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from support.acting import Always
from support.problems import random_tables, uniform_episodes
from support.training import deterministic_momdp

from aetdice import Episode, Episodes, augment, bsr
from aetdice.algorithms.dual import expected_next, step_rewards
from aetdice.data.device import to_device
from aetdice.data.noise import chance_share
from aetdice.data.successors import distinct_outcomes, pooled_outcomes
from aetdice.estimation.counted_model import CountedModel
from aetdice.objectives import Identity

HORIZON = 3


def stochastic(ends: bool = True) -> Episodes:
    return uniform_episodes(random_tables(3, ends=ends).momdp(), 60, seed=3)


def transitions(episodes: Episodes):
    for episode in episodes:
        for t in range(len(episode.rewards)):
            ended = episode.terminated and t == len(episode.rewards) - 1
            yield (
                (tuple(episode.observations[t]), int(episode.actions[t])),
                (tuple(episode.observations[t + 1]), tuple(episode.rewards[t]), ended),
            )


@pytest.mark.parametrize("ends", [False, True])
def test_outcomes_are_as_likely_as_they_were_seen(ends):
    episodes = stochastic(ends)
    pooled = pooled_outcomes(episodes, episodes)
    assert pooled is not None
    counted: dict = {}
    for key, outcome in transitions(episodes):
        counted.setdefault(key, Counter())[outcome] += 1
    for step, (key, _) in enumerate(transitions(episodes)):
        found = {
            (
                tuple(pooled.observations[step, k]),
                tuple(pooled.rewards[step, k]),
                bool(pooled.ends[step, k]),
            ): p
            for k, p in enumerate(pooled.probabilities[step])
            if p > 0
        }
        total = counted[key].total()
        assert found == pytest.approx({outcome: n / total for outcome, n in counted[key].items()})


def test_where_nothing_is_stochastic_there_is_nothing_to_pool():
    episodes = uniform_episodes(deterministic_momdp(0), 40, seed=0)
    assert pooled_outcomes(episodes, episodes) is None


def test_continuous_observations_are_not_pooled():
    episodes = stochastic()
    continuous = Episodes(
        episodes.observations + 0.5,
        episodes.actions,
        episodes.rewards,
        episodes.lengths,
        episodes.terminated,
        episodes.truncated,
        episodes.objectives,
    )
    assert pooled_outcomes(continuous, continuous) is None


def test_a_state_and_action_that_the_model_has_not_seen_keep_their_own_outcome():
    everything = stochastic(ends=False)
    model = Episodes.from_list([everything[0], everything[1]])
    known = {key for key, _ in transitions(model)}
    pooled = pooled_outcomes(everything, model)
    if pooled is None:
        pytest.skip("two episodes without chance")
    unseen = 0
    for step, (key, (after, reward, _)) in enumerate(transitions(everything)):
        assert pooled.probabilities[step].sum() == pytest.approx(1)
        if key not in known:
            unseen += 1
            assert pooled.probabilities[step, 0] == 1
            assert tuple(pooled.observations[step, 0]) == after
            assert tuple(pooled.rewards[step, 0]) == reward
    assert unseen


@pytest.mark.parametrize("terminal_reward", [False, True])
def test_means_over_what_may_follow_are_those_of_a_loop(terminal_reward):
    episodes, utility = stochastic(), bsr(0.5).utility
    pooled = pooled_outcomes(episodes, episodes)
    steps = to_device(augment(episodes, Identity(), HORIZON), 2, pooled, HORIZON).steps.everything()

    def function(observation, accrued, time):
        return jnp.sum(observation.astype(jnp.float32)) + jnp.sin(accrued[0]) + time.astype(jnp.float32)

    rewards = np.asarray(step_rewards(utility, steps, terminal_reward))
    ahead = np.asarray(expected_next(function, steps))
    follows, terminates = np.asarray(steps.follows), np.asarray(steps.terminates)
    value = eqx.filter_jit(utility)
    for row in range(0, steps.count, 7):
        accrued, time = np.asarray(steps.accrued[row]), int(steps.time[row])
        mean, reward, on, over = 0.0, 0.0, 0.0, 0.0
        for k, p in enumerate(pooled.probabilities[row]):
            after = accrued + pooled.rewards[row, k].astype(np.float32)
            going = not pooled.ends[row, k] and time + 1 < HORIZON
            gain = value(after) - value(np.zeros_like(after) if terminal_reward else accrued)
            reward = reward + p * (0 if terminal_reward and going else 1) * np.asarray(gain)
            on, over = on + p * going, over + p * bool(pooled.ends[row, k])
            if going:
                mean += p * float(
                    function(jnp.asarray(pooled.observations[row, k]), after, jnp.asarray(time + 1))
                )
        np.testing.assert_allclose(rewards[row], reward, atol=1e-5)
        np.testing.assert_allclose([ahead[row], follows[row], terminates[row]], [mean, on, over], atol=1e-5)


def wheel(last_known: bool) -> Episodes:
    """States 0, 1, 2 in a circle, four steps long; a log may not say where the fourth one led."""
    episodes = []
    for start in range(3):
        frames = (start + np.arange(5)) % 3
        frames[-1] = frames[-1] if last_known else frames[-2]
        episodes.append(
            Episode(frames[:, None], np.zeros(4, int), frames[:4, None].astype(float), False, True)
        )
    return Episodes.from_list(episodes)


def test_an_unknown_last_observation_is_no_transition():
    unknown = wheel(last_known=False)
    assert pooled_outcomes(unknown, unknown) is None
    assert distinct_outcomes(unknown) == distinct_outcomes(wheel(last_known=True)) == (3, 0)
    assert chance_share(unknown) == 0
    circle = CountedModel(unknown, 6).play(Always(0), 50, 0).returns
    np.testing.assert_array_equal(circle, np.full((50, 1), 6.0))


def test_a_step_that_was_seen_last_only_is_not_forgotten():
    frames = np.array([[0], [1], [1]])
    data = Episodes.from_list([Episode(frames, np.zeros(2, int), np.array([[0.0], [5.0]]), False, True)])
    returns = CountedModel(data, 2).play(Always(0), 5, 0).returns
    np.testing.assert_array_equal(returns, np.full((5, 1), 5.0))
