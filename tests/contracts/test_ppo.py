"""What the behaviours' training is made of: advantages, loss, moments, preferences."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aetdice.behaviours import RECIPES, Recipe, quick_recipe
from aetdice.behaviours.agent import encode, explore, init_agent
from aetdice.behaviours.normaliser import merge, nothing_seen
from aetdice.behaviours.pace import Pace
from aetdice.behaviours.ppo import Batch, Sample, generalised_advantages, loss, prepare, surrogate
from aetdice.behaviours.recipe import draw_preferences
from aetdice.envs.mujoco import BODIES
from aetdice.errors import InputError

SMALL = Recipe(steps=64, environments=4, span=8, epochs=2, minibatches=2, hidden=(8,), grid=3, episodes=1)


def agent_of(features=5, actions=2):
    return init_agent(features, actions, 2, (8, 8), (0.6, 0.3), jax.random.key(0))


# Advantages.


@jax.jit
def advantages(*columns):
    return generalised_advantages(*columns, discount=0.9, trace=0.8)


@given(st.integers(0, 2**31), st.integers(1, 12))
def test_advantages_are_the_loop_s(seed, span):
    """Σ (γλ)^k δ over the steps of the same episode, written as two loops."""
    rng = np.random.default_rng(seed)
    rewards, values, following = (rng.standard_normal((span, 2)).astype(np.float32) for _ in range(3))
    ended = rng.random(span) < 0.3
    terminated = ended & (rng.random(span) < 0.5)
    found = advantages(rewards, values, following, terminated, ended)
    for t in range(span):
        expected, weight = np.zeros(2), 1.0
        for k in range(t, span):
            bootstrap = 0 if terminated[k] else 0.9 * following[k]
            expected += weight * (rewards[k] + bootstrap - values[k])
            weight *= 0.9 * 0.8
            if ended[k]:
                break
        np.testing.assert_allclose(found[t], expected, rtol=1e-4, atol=1e-5)


def batch_of(rng, span=8, n=4, o=3):
    def normal(*shape):
        return jnp.asarray(rng.standard_normal((span, n, *shape)), jnp.float32)

    ended = jnp.asarray(rng.random((span, n)) < 0.2)
    preferences = jnp.asarray(rng.dirichlet(np.ones(2), (span, n)), jnp.float32)
    return Batch(
        normal(o), preferences, normal(2), normal(), normal(2), normal(o), ended & (normal() > 0), ended
    )


@pytest.mark.parametrize("objective", [0, 1])
def test_advantage_follows_the_preference(objective):
    """A pure preference ranks steps by its own objective; the other one counts by the least weight."""
    batch = batch_of(np.random.default_rng(0))
    pure = jnp.broadcast_to(jnp.eye(2, dtype=jnp.float32)[objective], batch.preferences.shape)
    agent, zeros, ones = agent_of(), jnp.zeros(3), jnp.ones(3)
    sample = eqx.filter_jit(prepare)(agent, batch._replace(preferences=pure), zeros, ones, SMALL)
    values = jax.vmap(agent.critic)(sample.features)
    weights = np.where(np.arange(2) == objective, 1, SMALL.least_weight)
    weighted = np.asarray(sample.target - values) @ weights
    np.testing.assert_allclose(
        sample.advantage, (weighted - weighted.mean()) / weighted.std(), rtol=1e-3, atol=1e-4
    )


# The loss.


@eqx.filter_jit
def slope(agent, sample):
    return eqx.filter_grad(lambda a: loss(a, sample, SMALL)[0])(agent)


@pytest.mark.parametrize("advantage", [-1.0, 2.0])
def test_a_step_down_the_loss_moves_the_odds_with_the_advantage(advantage):
    agent = agent_of()
    features, action = jnp.linspace(-1, 1, 5), jnp.array([0.3, -0.8])
    before = agent.log_probability(features, action)
    sample = Sample(features, action, before, jnp.array(advantage), agent.critic(features))
    gradient = slope(agent, sample)
    after = eqx.apply_updates(agent, jax.tree.map(lambda g: -1e-3 * g, gradient))
    assert np.sign(after.log_probability(features, action) - before) == np.sign(advantage)
    assert all(not np.any(leaf) for leaf in jax.tree.leaves(gradient.critic))  # the value was right


@pytest.mark.parametrize(("log_ratio", "advantage"), [(0.5, 1.0), (-0.5, -1.0)])
def test_beyond_the_clip_nothing_more_is_gained(log_ratio, advantage):
    slope = jax.grad(surrogate)
    assert slope(jnp.array(log_ratio), jnp.array(advantage), 0.2) == 0
    assert slope(jnp.array(-log_ratio), jnp.array(advantage), 0.2) != 0


def test_value_steps_towards_its_target():
    agent = agent_of()
    features, target = jnp.linspace(-1, 1, 5), jnp.array([3.0, -2.0])
    sample = Sample(features, jnp.zeros(2), jnp.array(0.0), jnp.array(0.0), target)
    gradient = slope(agent, sample)
    after = eqx.apply_updates(agent, jax.tree.map(lambda g: -1e-2 * g, gradient))
    gap = [np.abs(np.asarray(a.critic(features) - target)) for a in (agent, after)]
    assert np.all(gap[1] < gap[0])


# The policy.


def test_exploration_has_the_probability_it_reports_and_keeps_its_least_spread():
    agent = eqx.tree_at(lambda a: a.log_excess, agent_of(), jnp.array([-50.0, 0.0]))
    np.testing.assert_allclose(agent.std, [0.3, 1.3], rtol=1e-6)
    rng = np.random.default_rng(0)
    observations, noise = (jnp.asarray(rng.standard_normal((6, k)), jnp.float32) for k in (3, 2))
    preferences = jnp.full((6, 2), 0.5)
    centre, spread = jnp.zeros(3), jnp.ones(3)
    actions, log_probabilities = explore(agent, observations, preferences, centre, spread, noise)
    density = -0.5 * np.asarray(noise) ** 2 - np.log(agent.std)[None] - 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(log_probabilities, density.sum(axis=1), rtol=1e-4)
    features = encode(observations[0], preferences[0], centre, spread)
    np.testing.assert_allclose(actions[0], agent.actor(features) + agent.std * noise[0], rtol=1e-5)


# Moments.


@given(st.lists(st.integers(1, 40), min_size=1, max_size=5), st.integers(0, 2**31))
def test_running_moments_are_those_of_everything_at_once(sizes, seed):
    rng = np.random.default_rng(seed)
    parts = [rng.normal(3, 2, (size, 4)) for size in sizes]
    running = nothing_seen(4)
    for part in parts:
        running = merge(running, part)
    rows = np.concatenate(parts)
    assert running.total == len(rows)
    np.testing.assert_allclose(running.mean, rows.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(running.variance, rows.var(axis=0), rtol=1e-9, atol=1e-12)


def test_a_constant_has_a_spread_to_divide_by():
    assert np.all(merge(nothing_seen(2), np.full((5, 2), 7.0)).spread > 0)


# Preferences.


@pytest.mark.parametrize("objectives", [2, 3])
def test_preferences_widen_from_near_pure_speed_to_the_whole_simplex(objectives):
    recipe, rng = Recipe(steps=100 * 16384), np.random.default_rng(0)
    widths = [recipe.width(i) for i in range(101)]
    assert widths[0] == recipe.first_width
    assert np.all(np.diff(widths[:61]) > 0)
    assert set(widths[60:]) == {1.0}
    for width in (widths[0], widths[30], 1.0):
        drawn = draw_preferences(rng, 4000, objectives, width, 0.2)
        np.testing.assert_allclose(drawn.sum(axis=1), 1)
        assert drawn[:, 0].min() >= 1 - width
        assert drawn.min() >= 0
        assert (drawn.max(axis=1) == 1).mean() > 0.2 / objectives - 0.02
        expected = width * np.ones(objectives) / objectives + (1 - width) * np.eye(objectives)[0]
        np.testing.assert_allclose(drawn.mean(axis=0), expected, atol=0.02)
    if objectives == 2:
        drawn = draw_preferences(rng, 8000, 2, 1.0, 0.0)[:, 0]
        np.testing.assert_allclose(np.quantile(drawn, [0.1, 0.5, 0.9]), [0.1, 0.5, 0.9], atol=0.02)


def test_rate_falls_to_its_last_share():
    assert SMALL.rate(0) == SMALL.learning_rate
    assert SMALL.rate(SMALL.iterations) == pytest.approx(SMALL.learning_rate * SMALL.last_rate)


# Recipes and pace.


def test_every_body_has_a_recipe_and_a_quicker_one():
    assert set(RECIPES) == set(BODIES)
    for name in BODIES:
        assert quick_recipe(name).steps < RECIPES[name].steps


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": 10}, "at least 32 steps"),
        ({"minibatches": 5}, "32 steps cannot be cut into 5"),
        ({"epochs": 0}, "epochs must be at least 1"),
        ({"grid": 1}, "both ends"),
    ],
)
def test_impossible_recipes_are_refused(change, message):
    given = {"steps": 64, "environments": 4, "span": 8, "minibatches": 2, **change}
    with pytest.raises(InputError, match=message):
        Recipe(**given)


def test_pace_is_steps_over_time_without_the_first_update():
    pace = Pace(("speed", "energy"))
    pace.hear(100, 1000, None, float("nan"), now=50.0)
    assert (pace.text(), pace.clock()) == ("", "?")
    pace.hear(300, 1000, np.array([1234.4, 5.0]), 0.5, now=52.0)
    assert pace.text() == "100 steps/s, speed 1,234, energy 5, upright 50%"
    assert pace.clock() == "0:00:07"
