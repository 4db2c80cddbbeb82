"""ESR-IQL's n-step targets and payments: against loops, and on a chain whose start is far from its reward."""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from support.expectiles import expectile
from support.ragged import HORIZON, KEY, ragged, ragged_episodes, some_nu

from aetdice import Episode, Episodes, TrainingConfig, bsr, lsr
from aetdice.algorithms.iql import LAGS, Value, least_reach, prepare_target, td_target
from aetdice.learning.inputs import encoder_for, onto_device
from aetdice.learning.population import stack, start_values, train_values, value_metrics
from aetdice.learning.setup import algorithm_for, hyper_of
from aetdice.objectives import Linear, Objective

OBJECTIVE = Objective(bsr(0.5).utility, Linear(np.array([1.0, 0.5])))
WEIGHTS = np.array([1.0, 0.5])


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
@pytest.mark.parametrize("n_step", [1, 2, HORIZON, 9])
def test_the_last_of_n_steps_is_that_of_a_loop(n_step, cut):
    data, expected = ragged(cut=cut), []
    for steps in ragged_episodes(cut=cut).lengths:
        first = len(expected)
        expected += [first + min(t + n_step, steps) - 1 for t in range(steps)]
    np.testing.assert_array_equal(data.ahead(jnp.arange(data.steps.count), n_step), expected)


@pytest.mark.parametrize("terminal", [False, True], ids=["along-the-way", "at-the-end"])
@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
def test_targets_are_recorded_rewards_and_the_value_beyond_them(cut, terminal):
    data, value = ragged(cut=cut), Value(some_nu().encoder, (8,), KEY)
    utility, worth = map(eqx.filter_jit, (OBJECTIVE.utility, value))

    @eqx.filter_jit
    def targets(value, last):
        return td_target(
            value, prepare_target(value.encoder, OBJECTIVE, data.steps.everything(), last, terminal)
        )

    for n_step in (1, 3):
        last = data.steps.take(data.ahead(jnp.arange(data.steps.count), n_step))
        found, row = np.asarray(targets(value, last)), 0
        for episode in ragged_episodes(cut=cut):
            steps = len(episode.rewards)
            accrued = np.concatenate([np.zeros((1, 2)), np.cumsum(episode.rewards, axis=0)])
            for t in range(steps):
                then = min(t + n_step, steps)
                going = then < steps or (not episode.terminated and steps < HORIZON)
                paid = utility(jnp.asarray(accrued[then], jnp.float32))
                before = utility(jnp.asarray(np.zeros(2) if terminal else accrued[t], jnp.float32))
                expected = 0.0 if terminal and going else float(WEIGHTS @ np.asarray(paid - before))
                if going:
                    seen = jnp.asarray(np.atleast_1d(episode.observations[then]))
                    expected += float(worth(seen, jnp.asarray(accrued[then], jnp.float32), jnp.asarray(then)))
                assert found[row] == pytest.approx(expected, abs=1e-4)
                row += 1


def test_the_least_reach_is_what_slow_critics_need():
    config = dataclasses.replace(TrainingConfig().iql, steps=12_000, critic_averaging=0.995)
    assert [least_reach(horizon, config) for horizon in (3, 15, 50, 300)] == [1, 1, 4, 20]
    assert least_reach(300, dataclasses.replace(config, steps=120_000)) == 2
    assert least_reach(300, dataclasses.replace(config, critic_averaging=0.95)) == 2
    assert least_reach(300, dataclasses.replace(config, critic_averaging=1.0)) == 600 * LAGS
    given = TrainingConfig().adapted({"iql.n_step": 7})
    assert [algorithm_for("esr-iql", horizon, given).reach for horizon in (5, 300)] == [5, 7]


# A chain: the first of many actions decides what the last step brings.

LONG = 40
CHAIN = {
    "network.hidden": (32,),
    "iql.steps": 1200,
    "iql.batch": 64,
    "iql.critic_averaging": 0.97,
}


def chain() -> Episodes:
    rng, found = np.random.default_rng(0), []
    for _ in range(60):
        actions, rewards = rng.integers(2, size=LONG), np.zeros((LONG, 2))
        places = np.append(0, np.full(LONG, 1 + actions[0]))[:, None]
        rewards[-1] = 4.0 if actions[0] else 1.0
        found.append(Episode(places, actions, rewards, False, True))
    return Episodes.from_list(found)


@pytest.mark.trains
def test_n_step_targets_reach_the_start_of_a_long_chain_in_fewer_updates():
    data, found = chain(), {}
    exact = expectile(1.5 * data.returns[:, 0], np.ones(len(data)), 0.9)
    for n_step in (1, None):
        config = TrainingConfig().adapted(CHAIN | {"iql.n_step": n_step})
        learner = algorithm_for("esr-iql", LONG, config)
        seen, encoder = onto_device(data, LONG, learner), encoder_for(data, LONG, learner, config.network)
        own = {"expectile": 0.9, "temperature": 14.0, "learning_rate": 3e-3}
        hypers = stack([hyper_of({"objective": lsr((1.0, 0.5)), **own}, learner)])
        seeds = jnp.zeros(1, jnp.int32)
        states = start_values(learner, encoder, hypers, seeds, seen)
        states = train_values(states, learner, hypers, seeds, seen, jnp.arange(config.iql.steps))
        found[n_step] = float(value_metrics(learner, states, hypers, seen)["start_value"][0])
    assert found[1] < 0.5 * exact  # nothing has arrived
    assert found[None] == pytest.approx(exact, rel=0.1)
