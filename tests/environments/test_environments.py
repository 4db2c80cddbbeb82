"""What every listed environment must offer, in JAX and under Gymnasium."""

import gymnasium
import jax
import jax.numpy as jnp
import mo_gymnasium
import numpy as np
import pytest

from aetdice.envs import ENVIRONMENTS, IDS, Environment, FairTaxi, FiniteEnvironment
from aetdice.envs.gymnasium import GymnasiumEnvironment
from aetdice.registration import register_all

HEADINGS = (
    "## Description",
    "## Observation Space",
    "## Action Space",
    "## Reward Space",
    "## Starting State",
    "## Episode Termination",
    "## Arguments",
    "## Credits",
)


FINITE = [name for name, make in ENVIRONMENTS.items() if isinstance(make(), FiniteEnvironment)]


@pytest.fixture(params=ENVIRONMENTS)
def name(request) -> str:
    return request.param


@pytest.fixture
def environment(name) -> Environment:
    return ENVIRONMENTS[name]()


def actions_of(environment: Environment, seed: int = 0) -> np.ndarray:
    """Random actions for an episode of full length."""
    return np.random.default_rng(seed).integers(0, environment.actions, environment.horizon)


def play(env: gymnasium.Env, actions: np.ndarray, seed: int = 0) -> list[tuple]:
    """(observation, reward, terminated, truncated) of every step until the episode is over."""
    env.reset(seed=seed)
    steps = []
    for action in actions:
        observation, reward, terminated, truncated, _ = env.step(int(action))
        steps.append((observation, reward, terminated, truncated))
        if terminated or truncated:
            break
    return steps


# Under Gymnasium.


@pytest.mark.parametrize("make", [gymnasium.make, mo_gymnasium.make], ids=["gymnasium", "mo-gymnasium"])
def test_registered_id_makes_the_environment(name, make):
    env = make(IDS[name])
    assert isinstance(env.unwrapped, GymnasiumEnvironment)
    assert env.unwrapped.environment == ENVIRONMENTS[name]()
    assert env.spec.id == IDS[name]


def test_registering_twice_is_harmless(name):
    before = gymnasium.registry[IDS[name]]
    register_all()
    assert gymnasium.registry[IDS[name]] is before


def test_spaces_contain_what_an_episode_shows(name):
    env = mo_gymnasium.make(IDS[name]).unwrapped
    assert env.reward_dim == len(env.environment.objectives) == env.reward_space.shape[0]
    assert env.action_space.n == env.environment.actions
    observation, info = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    assert info == {}
    for seed in range(5):
        for observation, reward, _, _ in play(env, actions_of(env.environment, seed)):
            assert env.observation_space.contains(observation)
            assert env.reward_space.contains(reward)


def test_reward_space_contains_rewards_that_do_not_round_evenly():
    taxi = FairTaxi(
        size=1,
        origins=((0, 0),),
        destinations=((0, 0),),
        start=(0, 0),
        horizon=3,
        deliveries=(91.3,),
        penalties=(-60.7,),
        scale=93.6,
    )
    env = GymnasiumEnvironment(taxi)
    rewards = [reward for _, reward, _, _ in play(env, np.array([4, 5, 5]))]
    assert [float(reward[0]) for reward in rewards] == pytest.approx([0, 91.3 / 93.6, -60.7 / 93.6])
    assert all(env.reward_space.contains(reward) for reward in rewards)


@pytest.mark.parametrize("name", FINITE)
def test_reward_bounds_are_attained(name):
    """Every bound is the reward of some step, so the reward space is as small as it can be."""
    environment = ENVIRONMENTS[name]()
    states, actions = np.arange(environment.states), np.arange(environment.actions)
    step = jax.jit(jax.vmap(jax.vmap(environment.transition, (None, 0)), (0, None)))
    rewards = np.asarray(step(states, actions)[1]).reshape(-1, len(environment.objectives))
    low, high = environment.reward_bounds
    np.testing.assert_allclose(rewards.min(axis=0), low, rtol=1e-6)
    np.testing.assert_allclose(rewards.max(axis=0), high, rtol=1e-6)


def test_same_seed_same_episode(name):
    first, second = (mo_gymnasium.make(IDS[name]).unwrapped for _ in range(2))
    actions = actions_of(first.environment)
    for here, there in zip(play(first, actions, 7), play(second, actions, 7), strict=True):
        np.testing.assert_array_equal(here[0], there[0])
        np.testing.assert_array_equal(here[1], there[1])
        assert here[2:] == there[2:]


def test_episode_is_over_at_the_horizon_and_not_before_unless_terminated(name):
    env = mo_gymnasium.make(IDS[name])
    steps = play(env, actions_of(env.unwrapped.environment))
    assert all(not terminated and not truncated for _, _, terminated, truncated in steps[:-1])
    _, _, terminated, truncated = steps[-1]
    assert terminated != truncated
    assert truncated == (len(steps) == env.unwrapped.environment.horizon and not terminated)


@pytest.mark.parametrize(
    ("name", "terminates", "steps"),
    [("two-step", True, 2), ("fair-taxi", False, 50), ("pointmaze-2obj", False, 300)],
)
def test_how_an_episode_ends(name, terminates, steps):
    env = mo_gymnasium.make(IDS[name])
    played = play(env, actions_of(env.unwrapped.environment))
    assert len(played) == steps
    assert played[-1][2:] == (terminates, not terminates)


def test_reset_starts_a_new_episode(name):
    env = mo_gymnasium.make(IDS[name]).unwrapped
    actions = actions_of(env.environment)
    first, again = play(env, actions), play(env, actions)
    assert len(first) == len(again)
    np.testing.assert_array_equal([step[1] for step in first], [step[1] for step in again])


def test_ansi_shows_the_state_as_text(name):
    env = mo_gymnasium.make(IDS[name], render_mode="ansi")
    assert len(set(frames(env))) > 1
    assert all(isinstance(frame, str) and frame.endswith("\n") for frame in frames(env))


def test_rgb_array_shows_the_state_in_pixels(name):
    env = mo_gymnasium.make(IDS[name], render_mode="rgb_array")
    pictures = frames(env)
    for picture in pictures:
        assert picture.dtype == np.uint8
        assert picture.ndim == 3
        assert picture.shape[2] == 3
        assert picture.shape == pictures[0].shape
    assert any(not np.array_equal(picture, pictures[0]) for picture in pictures)


def frames(env: gymnasium.Env) -> list:
    env.reset(seed=0)
    shown = [env.render()]
    for action in (0, env.action_space.n - 1):
        env.step(action)
        shown.append(env.render())
    return shown


@pytest.mark.parametrize("heading", HEADINGS)
def test_docstring_is_a_page_in_mo_gymnasium_s_manner(name, heading):
    page = mo_gymnasium.make(IDS[name]).unwrapped.__doc__
    assert page == type(ENVIRONMENTS[name]()).__doc__
    lines = [line.strip() for line in page.splitlines()]
    assert heading in lines
    assert lines[lines.index(heading) + 1] not in ("", *HEADINGS)


def test_unknown_render_mode_is_refused(environment):
    with pytest.raises(ValueError, match="unknown render mode 'human'; known: ansi, rgb_array"):
        GymnasiumEnvironment(environment, render_mode="human")


@pytest.mark.parametrize("action", [-1, 99, 0.5, "north"])
def test_action_outside_the_space_is_refused(environment, action):
    env = GymnasiumEnvironment(environment)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="is not one of 0 … "):
        env.step(action)


@pytest.mark.parametrize("method", ["step", "render"])
def test_reset_comes_first(environment, method):
    env = GymnasiumEnvironment(environment, render_mode="ansi")
    with pytest.raises(RuntimeError, match=f"call reset before {method}"):
        env.step(0) if method == "step" else env.render()


# In JAX.


def test_jit_and_vmap_step_like_the_plain_function(environment):
    actions = jnp.asarray(actions_of(environment)[:8])
    keys = jax.random.split(jax.random.key(0), actions.size)
    states, outcomes = [environment.reset(keys[0])], []
    for key, action in zip(keys, actions, strict=True):
        outcomes.append(environment.step(key, states[-1], action))
        states.append(outcomes[-1][0])
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states[:-1])
    batched = jax.jit(jax.vmap(environment.step))(keys, stacked, actions)
    same_numbers(environment, batched, jax.tree.map(lambda *x: jnp.stack(x), *outcomes))


def same_numbers(environment: Environment, here, there) -> None:
    """Equal to the bit where numbers are counted, to rounding where physics is compiled another way."""
    tolerance = 0 if isinstance(environment, FiniteEnvironment) else 1e-4
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance), here, there)


def test_scan_plays_the_same_episode_as_gymnasium(name, environment):
    """With the same keys: those that the adaptor draws from its seed, one for the reset and one per step."""
    actions, (rng, _) = actions_of(environment, seed=3), gymnasium.utils.seeding.np_random(0)
    keys = jax.vmap(jax.random.key)(rng.integers(2**31, size=len(actions) + 1))

    def advance(state, given):
        key, action = given
        after, reward, terminated = environment.step(key, state, action)
        return after, (environment.observe(after), reward, terminated)

    _, (observations, rewards, terminated) = jax.lax.scan(
        advance, environment.reset(keys[0]), (keys[1:], jnp.asarray(actions))
    )
    steps = play(mo_gymnasium.make(IDS[name]), actions)
    same_numbers(environment, observations[: len(steps)], np.array([step[0] for step in steps]))
    same_numbers(environment, rewards[: len(steps)], np.array([step[1] for step in steps]))
    np.testing.assert_array_equal(terminated[: len(steps)], [step[2] for step in steps])


@pytest.mark.parametrize("name", FINITE)
def test_every_state_has_its_own_observation_inside_the_sizes(name):
    environment = ENVIRONMENTS[name]()
    observations = np.asarray(jax.jit(jax.vmap(environment.observe))(np.arange(environment.states)))
    assert len(np.unique(observations, axis=0)) == environment.states
    assert np.all((observations >= 0) & (observations < environment.observation_sizes))
