"""Evaluation inside JAX and through Gymnasium sample the same episodes, up to chance."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from aetdice import InputError, Policy
from aetdice.data.transforms import Scaling
from aetdice.envs import FairTaxi, TwoStep
from aetdice.envs.batched import GymnasiumBatch
from aetdice.envs.gymnasium import GymnasiumEnvironment
from aetdice.evaluation.rollout import Situation, rollout_returns, sample_returns, sample_returns_of
from aetdice.networks import Categorical, Encoder, PolicyNetwork

TAXI = FairTaxi(size=3, origins=((0, 0), (2, 2)), destinations=((0, 1), (2, 1)), start=(1, 1), horizon=6)
TWO_STEP = TwoStep(first_reward=(2.0, 0.0))


def random_policy(env, seed=0):
    """A policy with a mind of its own: the last layer of its network does not start at zero."""
    sizes = env.observation_sizes
    facts = np.zeros(len(sizes)), np.ones(len(sizes)), np.ones(2)
    encoder = Encoder(sizes, env.horizon, True, True, *facts, observation_fourier=0, fourier=8)
    network = PolicyNetwork(encoder, Categorical(env.actions), (16,), jax.random.key(seed))
    last = jax.random.normal(jax.random.key(seed + 1), (16, env.actions))
    return Policy(eqx.tree_at(lambda p: p.net.weights[-1], network, last))


def batch_of(env):
    return GymnasiumBatch(lambda: GymnasiumEnvironment(env), env.objectives, env.horizon)


@pytest.mark.parametrize(
    "env", [pytest.param(TWO_STEP, marks=pytest.mark.slow), TAXI], ids=["two-step", "fair-taxi"]
)
def test_batched_returns_are_distributed_like_those_inside_jax(env):
    policy, batched = random_policy(env), 300
    inside = sample_returns(policy, env, 20_000, seed=0)
    outside = sample_returns(policy, batch_of(env), batched, seed=1)
    assert outside.shape == (batched, 2)
    kinds, group = np.unique(np.concatenate([inside, outside]).round(4), axis=0, return_inverse=True)
    counts = np.stack([np.bincount(part, minlength=len(kinds)) for part in np.split(group.ravel(), [20_000])])
    common = counts[0] / 20_000 * batched >= 5
    pooled = np.column_stack([counts[:, common], counts[:, ~common].sum(axis=1)])
    pooled = pooled[:, pooled.sum(axis=0) > 0]
    assert pooled.shape[1] >= 3
    assert scipy.stats.chi2_contingency(pooled).pvalue > 1e-3
    error = np.sqrt(inside.var(axis=0) * (1 / batched + 1 / 20_000))
    assert np.all(np.abs(inside.mean(axis=0) - outside.mean(axis=0)) < 4 * error)


def test_equal_seeds_give_equal_returns_and_others_do_not():
    policy, env = random_policy(TWO_STEP), batch_of(TWO_STEP)
    one, again, other = (sample_returns(policy, env, 30, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)


def test_many_policies_at_once_act_as_each_does_alone():
    policies = [random_policy(TAXI, seed) for seed in range(3)]
    together = sample_returns_of(policies, TAXI, 50, seed=0)
    for policy, found in zip(policies, together, strict=True):
        np.testing.assert_array_equal(found, sample_returns(policy, TAXI, 50, seed=0))
    assert not np.array_equal(together[0], together[1])


@pytest.mark.parametrize("kind", ["inside", "batched"])
def test_transformed_returns_are_those_of_the_scaled_rewards(kind):
    """The policy is blind to accrued reward here, so that both act alike."""
    blind = eqx.tree_at(lambda p: p.net.weights[0], random_policy(TAXI).network, replace_fn=jnp.zeros_like)
    env = TAXI if kind == "inside" else batch_of(TAXI)
    plain = sample_returns(Policy(blind), env, 20, seed=0)
    scaled = sample_returns(Policy(blind, transform=Scaling((2.0, 0.5))), env, 20, seed=0)
    assert np.ptp(plain, axis=0).min() > 0
    np.testing.assert_allclose(scaled, plain * [2, 0.5], rtol=1e-5)


class Mortal:
    """Pays 1 at every step, also after the end; episode i terminates with step i + 1."""

    horizon, objectives = 4, ("pay", "cost")

    def __init__(self):
        self.steps = []

    def reset(self, count, seed):
        self.time, self.count = 0, count
        return np.zeros((count, 1), np.int32)

    def step(self, actions):
        self.time += 1
        self.steps.append(self.time)
        reward = np.tile([1.0, -2.0], (self.count, 1))
        return np.zeros((self.count, 1), np.int32), reward, np.arange(self.count) + 1 == self.time


def small_policy():
    encoder = Encoder((1,), 4, True, True, np.zeros(1), np.ones(1), np.ones(2), 0, 8)
    return Policy(PolicyNetwork(encoder, Categorical(2), (8,), jax.random.key(0)))


def test_terminated_episodes_stop_counting():
    found = sample_returns(small_policy(), Mortal(), 6, seed=0)
    np.testing.assert_array_equal(found[:, 0], [1, 2, 3, 4, 4, 4])
    np.testing.assert_array_equal(found[:, 1], -2 * found[:, 0])


def test_stepping_stops_when_all_have_terminated():
    env = Mortal()
    sample_returns(small_policy(), env, 2, seed=0)
    assert env.steps == [1, 2]


# Beginning in the middle of an episode.


def test_an_episode_begun_in_its_middle_keeps_what_it_had():
    """At s1 with (5, 6) accrued there is one step left, which pays (9, 1), (4, 4) or (1, 9)."""
    begin = Situation(jnp.asarray(1), jnp.asarray([5.0, 6.0]), jnp.asarray(1, jnp.int32))
    found = sample_returns(random_policy(TWO_STEP), TWO_STEP, 500, 0, begin=begin)
    assert {tuple(row) for row in found.tolist()} == {(14.0, 7.0), (9.0, 10.0), (6.0, 15.0)}


def test_policy_is_told_the_accrued_reward_and_the_time_of_the_beginning():
    """So the same shares come up as the network gives in that augmented state."""
    policy = random_policy(TWO_STEP)
    accrued, time = jnp.asarray([5.0, 6.0]), jnp.asarray(1, jnp.int32)
    begin = Situation(jnp.asarray(1), accrued, time)
    found = sample_returns(policy, TWO_STEP, 4000, 0, begin=begin)
    counts = [np.sum(found[:, 0] == 5 + pay) for pay in (9, 4, 1)]
    logits = policy.network.outputs(jnp.ones(1, jnp.int32), accrued, time)
    assert scipy.stats.chisquare(counts, 4000 * np.asarray(jax.nn.softmax(logits), float)).pvalue > 1e-3


def test_time_left_is_what_the_horizon_leaves():
    """Fair-Taxi never terminates: from t = 5 of 6 one step is left, from t = 6 none."""
    policy, key = random_policy(TAXI), jax.random.key(0)
    state = TAXI.reset(key)
    for time, steps in ((6, 0), (5, 1)):
        begin = Situation(state, jnp.asarray([0.5, 0.25]), jnp.asarray(time, jnp.int32))
        gained = np.asarray(rollout_returns(policy.network, TAXI, 300, key, begin)) - [0.5, 0.25]
        assert np.any(gained != 0) == bool(steps)  # an invalid pick-up costs; nothing else can happen
        assert len(np.unique(gained.round(5), axis=0)) <= 1 + steps


def test_batched_environment_begins_at_its_own_reset():
    begin = Situation(jnp.asarray(1), jnp.zeros(2), jnp.asarray(1, jnp.int32))
    with pytest.raises(InputError, match="a batched environment begins at its own reset"):
        sample_returns(random_policy(TWO_STEP), batch_of(TWO_STEP), 3, 0, begin=begin)
