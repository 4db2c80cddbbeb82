"""Mixture policies: a course is drawn once per episode, wherever a policy acts."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.policies import complaint, outputs_of, policy_of, some_states

from aetdice import Episodes, Policy, ser, train
from aetdice.algorithms.episode_weighting import episode_weighting
from aetdice.config import TrainingConfig
from aetdice.envs.environment import Environment
from aetdice.evaluation import load_policy
from aetdice.evaluation.rollout import rollout_returns
from aetdice.learning.inputs import encoder_for, onto_device
from aetdice.learning.source import weigh
from aetdice.networks import PolicyNetwork
from aetdice.serving import policy_model
from aetdice.serving.programs import policy_programs
from aetdice_runner import Runner
from aetdice_runner.artefact import courses_from

CHANCES = (0.5, 0.3, 0.2)
COUNT = 4_000


def mixture(chances=CHANCES, *, decided=False, objectives=2):
    """A policy of three actions with a course for each chance; if `decided`, a course is an action."""
    plain = policy_of(objectives=objectives)
    network = PolicyNetwork(
        plain.network.encoder, plain.network.head, (32, 32), jax.random.key(0), len(chances)
    )
    last = 0.5 * jax.random.normal(jax.random.key(1), network.net.weights[-1].shape)
    network = eqx.tree_at(lambda p: (p.net.weights[-1], p.courses), network, (last, jnp.array(chances)))
    if decided:
        features, into = network.encoder.features, jnp.zeros_like(network.net.weights[0])
        onward = [jnp.eye(*weight.shape) for weight in network.net.weights[1:]]
        into = into.at[features + jnp.arange(3), jnp.arange(3)].set(50.0)
        network = eqx.tree_at(lambda p: p.net.weights, network, (into, *onward))
    return Policy(network, plain.details)


class Shown(Environment):
    """What toys have in common: their state is what is seen of it."""

    horizon, objectives, actions = 16, ("right", "left"), 2
    observation_bounds = reward_bounds = (np.zeros(1), np.ones(1))

    def reset(self, key):
        return jnp.zeros(1)

    def observe(self, state):
        return state

    def text(self, state):
        return str(state)

    def picture(self, state, path=()):
        return np.zeros((1, 1, 3), np.uint8)


class Counting(Shown):
    """R_i counts how often action i was taken."""

    horizon, objectives, actions = 10, ("a", "b", "c"), 3

    def reset(self, key):
        return jnp.zeros(3)

    def step(self, key, state, action):
        return state, jax.nn.one_hot(action, 3), jnp.zeros((), bool)


def states_of(policy):
    observations, accrued, time = some_states(policy)
    return observations, accrued, time.astype(np.int32), np.arange(len(time), dtype=np.int32) % len(CHANCES)


def test_a_course_is_a_policy_of_its_own():
    policy = mixture()
    *states, courses = (jnp.asarray(each) for each in states_of(policy))
    found = jax.jit(jax.vmap(policy.network.outputs))(*states, courses)
    for course in range(len(CHANCES)):
        alone = policy.on_course(course).network
        assert not alone.is_mixture
        rows = courses == course
        expected = outputs_of(alone, *states)
        np.testing.assert_allclose(found[rows], expected[rows], atol=1e-5)


def test_the_likelihood_without_a_course_is_that_of_the_mixture():
    network = mixture().network
    *states, _ = (jnp.asarray(each) for each in states_of(mixture()))
    actions = jnp.zeros(len(states[0]), jnp.int32)
    ways = [network, *(network.on_course(course) for course in range(len(CHANCES)))]
    found, *each = (jax.jit(jax.vmap(way.log_probability))(*states, actions) for way in ways)
    np.testing.assert_allclose(np.exp(found), np.array(CHANCES) @ np.exp(each), rtol=1e-4)


def test_courses_that_are_never_drawn_are_dropped():
    policy = mixture((0.6, 0.0, 0.4))
    kept = policy.network.simplified()
    np.testing.assert_allclose(kept.courses, [0.6, 0.4])
    states = [jnp.asarray(each[0]) for each in states_of(policy)[:3]]
    for old, new in ((0, 0), (2, 1)):
        np.testing.assert_allclose(
            policy.network.outputs(*states, jnp.asarray(old)), kept.outputs(*states, jnp.asarray(new))
        )
    assert not mixture((0.0, 1.0, 0.0)).network.simplified().is_mixture
    assert len(mixture().network.simplified().courses) == len(CHANCES)


def test_episodes_of_a_rollout_keep_to_their_course():
    network = mixture(decided=True, objectives=3).network
    returns = np.asarray(rollout_returns(network, Counting(), COUNT, jax.random.key(0)))
    assert set(returns.max(axis=1)) == {10.0}
    np.testing.assert_allclose((returns == 10).mean(axis=0), CHANCES, atol=0.03)
    greedy = np.asarray(rollout_returns(network, Counting(), 5, jax.random.key(0), greedy=True))
    assert (greedy[:, 0] == 10).all()


@pytest.mark.parametrize("shipped", [False, True])
def test_sessions_keep_to_a_course_and_draw_another_at_reset(shipped):
    policy = mixture(decided=True)
    sessions = (
        Runner(policy_model(policy)).start(COUNT, seed=0) if shipped else policy.vectorised(COUNT, seed=0)
    )
    seen, rewards = np.zeros((COUNT, 3)), np.zeros((COUNT, 2))
    first = sessions.act(seen)
    np.testing.assert_allclose(np.bincount(first, minlength=3) / COUNT, CHANCES, atol=0.03)
    sessions.observe(rewards)
    np.testing.assert_array_equal(sessions.act(seen), first)
    ended = np.arange(COUNT) < COUNT // 2
    sessions.observe(rewards, ended=ended)
    again = sessions.act(seen)
    np.testing.assert_array_equal(again[~ended], first[~ended])
    assert 0.3 < np.mean(again[ended] == first[ended]) < 0.5  # Σ p² = 0.38


def test_shipped_mixtures_answer_as_the_policy_does():
    policy = mixture()
    states = states_of(policy)
    expected = jax.jit(jax.vmap(policy.network.outputs))(*states)
    runner = Runner(policy_model(policy))
    np.testing.assert_allclose(runner.courses, CHANCES)
    np.testing.assert_allclose(runner.probabilities(*states), jax.nn.softmax(expected), atol=1e-5)
    assert policy_programs(policy)


def test_a_mixture_travels_as_one_file(tmp_path):
    policy = mixture()
    policy.save(tmp_path / "p.npz")
    again = load_policy(tmp_path / "p.npz")
    assert again.courses == pytest.approx(CHANCES)
    *states, courses = states_of(policy)
    key = jax.random.key(0)
    np.testing.assert_array_equal(
        again.sample(*states, key, courses=courses), policy.sample(*states, key, courses=courses)
    )


def test_sampling_without_courses_is_refused():
    policy = mixture()
    *states, _ = states_of(policy)
    assert "draw_courses" in complaint(lambda: policy.sample(*states, jax.random.key(0)))


@pytest.mark.parametrize("wrong", [[], [[1.0]], [-0.5, 1.5], [float("nan"), 1.0]])
def test_metadata_with_wrong_courses_is_refused(wrong):
    with pytest.raises(ValueError, match="courses"):
        courses_from(json.loads(json.dumps({"courses": wrong})))
    assert courses_from({}) is None


def two_ways(episodes=200, horizon=16, seed=0):
    """A line: half of the drivers go right, half left; noise as large as a step hides who is who at first."""
    rng = np.random.default_rng(seed)
    side = rng.choice([-1, 1], episodes)
    place = np.zeros(episodes)
    frames, actions, rewards = [place], [], []
    for _ in range(horizon):
        action = np.where(rng.random(episodes) < 0.9, side, -side)
        place = np.clip(place + 0.4 * action + 0.4 * rng.standard_normal(episodes), -4, 4)
        rewards.append(np.column_stack([place > 2, place < -2]).astype(float))
        frames.append(place)
        actions.append((action > 0).astype(int))
    return Episodes(
        observations=np.stack(frames, axis=1).reshape(-1, 1).astype(np.float32),
        actions=np.stack(actions, axis=1).reshape(-1),
        rewards=np.stack(rewards, axis=1).reshape(-1, 2),
        lengths=np.full(episodes, horizon),
        terminated=np.zeros(episodes, bool),
        truncated=np.ones(episodes, bool),
        objectives=("right", "left"),
    )


class Line(Shown):
    """The world of `two_ways`."""

    def step(self, key, state, action):
        moved = state + 0.4 * (2.0 * action.astype(jnp.float32) - 1) + 0.4 * jax.random.normal(key, (1,))
        place = jnp.clip(moved, -4, 4)
        return place, jnp.stack([place[0] > 2, place[0] < -2]).astype(jnp.float32), jnp.zeros((), bool)


def test_episodes_of_one_kind_have_one_course():
    dataset = two_ways()
    config = TrainingConfig().adapted({"extraction.courses": 4})
    learner = episode_weighting(16, config)
    data = onto_device(dataset, 16, learner)
    hyper = learner.hyper(ser(threshold=0.1), 1e-3, sample_size=0.1)
    encoder = encoder_for(dataset, 16, learner, config.network)
    state = learner.finish(learner.init(encoder, hyper, data, jax.random.key(0)), hyper, data)
    courses = np.asarray(weigh(learner, state, hyper, data).courses).reshape(len(dataset), 16)
    assert (courses == courses[:, :1]).all()
    far = dataset.returns.max(axis=1) >= 8
    right = dataset.returns[far, 0] > dataset.returns[far, 1]
    assert not set(courses[far, 0][right]) & set(courses[far, 0][~right])


@pytest.mark.trains
def test_a_course_keeps_a_policy_from_choosing_anew():
    """SER wants half of the episodes on either side; deciding at every step costs time on the way."""
    dataset, objective = two_ways(), ser(threshold=0.1)
    scores, policies = {}, {}
    for courses in (1, 8):
        settings = {"network.hidden": (32,), "extraction.steps": 600, "extraction.courses": courses}
        run = train(
            dataset,
            objective,
            algorithm="episode-weighting",
            sample_size=0.3,
            config=TrainingConfig().adapted(settings),
            progress=False,
        )
        policies[courses] = run.policy
        returns = rollout_returns(run.policy.network, Line(), 2_000, jax.random.key(0))
        scores[courses] = float(objective(returns))
        assert not run.twin.network.is_mixture
    assert len(policies[8].courses) > 1
    assert not policies[1].network.is_mixture
    assert scores[8] > scores[1] + 0.1
