"""The bodies in motion: models, batches, threads, and Gymnasium's interface."""

import dataclasses
import importlib.util
import os
import subprocess
import sys

if sys.platform == "linux" and "DISPLAY" not in os.environ:
    os.environ.setdefault("MUJOCO_GL", "egl")  # read when MuJoCo is imported

import gymnasium
import mo_gymnasium
import numpy as np
import pytest
from test_body_rules import LAYOUTS
from test_environments import HEADINGS

from aetdice import registration
from aetdice.envs.batched import BatchedEnvironment, GymnasiumBatch
from aetdice.envs.mujoco import BODIES, BatchedBody
from aetdice.envs.mujoco.adaptor import BodyEnvironment
from aetdice.envs.mujoco.models import edited_asset, load_model, margins_add
from aetdice.errors import InputError


@pytest.fixture(params=BODIES)
def name(request) -> str:
    return request.param


def actions_of(name, steps, count, seed=0):
    limits = np.array(BODIES[name].action_limits)
    return np.random.default_rng(seed).uniform(-1.2, 1.2, (steps, count, len(limits))) * limits


def play(batch, actions, seed=0):
    """Observations, rewards and terminations of every step, stacked."""
    batch.reset(actions.shape[1], seed)
    return [np.stack(parts) for parts in zip(*(batch.step(row) for row in actions), strict=True)]


# Models.


def test_model_fits_the_table(name):
    model, body = load_model(BODIES[name]), BODIES[name]
    assert (model.nq, model.nv, model.nu) == (body.positions, body.velocities, body.action_size)
    assert model.opt.timestep == LAYOUTS[name][3]
    assert model.na == 0  # so that MuJoCo's state is time, positions and velocities
    np.testing.assert_array_equal(model.actuator_ctrlrange[:, 1], body.action_limits)


@pytest.mark.parametrize(
    ("name", "gears"),
    [
        ("ant", [100] * 8),
        ("walker2d", [100] * 6),
        ("halfcheetah", [120, 90, 60, 120, 60, 30]),
        ("hopper", [200, 200, 300]),
        ("swimmer", [300, 300]),
    ],
)
def test_gears(name, gears):
    np.testing.assert_array_equal(load_model(BODIES[name]).actuator_gear[:, 0], gears)


@pytest.mark.parametrize(("name", "damping"), [("walker2d", 3), ("hopper", 40)])
def test_damping_of_all_but_the_root(name, damping):
    model = load_model(BODIES[name])
    np.testing.assert_array_equal(model.dof_damping.reshape(model.nv, -1)[:3, 0], 0)
    np.testing.assert_array_equal(model.dof_damping.reshape(model.nv, -1)[3:, 0], damping)


def test_walker2d_is_half_as_heavy_again():
    import mujoco

    plain = mujoco.MjModel.from_xml_string(
        edited_asset(BODIES["walker2d"], False).replace('density="1500"', 'density="1000"')
    )
    np.testing.assert_allclose(load_model(BODIES["walker2d"]).body_mass, 1.5 * plain.body_mass, rtol=1e-12)


def test_hopper_is_unlimited_and_starts_at_its_height():
    model = load_model(BODIES["hopper"])
    assert not model.jnt_limited.any()
    assert model.qpos0[1] == 1.25
    assert load_model(BODIES["walker2d"]).jnt_limited[3:].all()


@pytest.mark.parametrize(("name", "margin"), [("ant", 0.01), ("hopper", 0.001)])
def test_margin_of_a_contact_is_the_asset_s(name, margin):
    """Whether the engine adds margins up or takes the larger one."""
    margins = load_model(BODIES[name]).geom_margin
    np.testing.assert_allclose(margins * (2 if margins_add() else 1), margin)


# Physics.


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cold", [True, False], ids=["cold solver", "as Gymnasium steps it"])
def test_halfcheetah_moves_as_gymnasium_s(cold, tmp_path, monkeypatch):
    """The one unedited body: equal to the bit with an equally cold solver, nearly so without."""
    monkeypatch.chdir(tmp_path)  # MuJoCo leaves a log
    env = gymnasium.make("HalfCheetah-v5").unwrapped
    env.reset(seed=0)
    batch = BatchedBody("halfcheetah", threads=1)
    batch.reset_to(env.data.qpos[None], env.data.qvel[None])
    for action in actions_of("halfcheetah", 30, 1).clip(-1, 1):
        if cold:
            env.data.qacc_warmstart[:] = 0
        env.step(action[0])
        batch.step(action)
        tolerance = 0 if cold else 1e-8
        np.testing.assert_allclose(batch.positions[0], env.data.qpos, rtol=0, atol=tolerance)
        np.testing.assert_allclose(batch.velocities[0], env.data.qvel, rtol=0, atol=tolerance * 100)


def test_speed_is_the_way_covered_over_time():
    batch = BatchedBody("walker2d", threads=1)
    batch.reset(3, 0)
    for actions in actions_of("walker2d", 5, 3):
        before = batch.positions
        _, rewards, _ = batch.step(actions)
        speed = (batch.positions - before)[:, 0] / 0.008
        np.testing.assert_allclose(rewards[:, 0], speed + 1, rtol=0, atol=1e-12)
        effort = np.sum(np.clip(actions, -1, 1) ** 2, axis=1)
        np.testing.assert_allclose(5 - rewards[:, 1], effort, rtol=0, atol=1e-12)


# Batches.


def test_batched_body_keeps_the_protocol(name):
    assert isinstance(BatchedBody(name, threads=1), BatchedEnvironment)


def test_threads_and_batches_do_not_change_a_bit(name):
    """Three threads, one thread, and every episode by itself."""
    actions = actions_of(name, 40, 7)
    threaded = play(BatchedBody(name, threads=3), actions, seed=5)
    plain = play(BatchedBody(name, threads=1), actions, seed=5)
    for here, there in zip(threaded, plain, strict=True):
        np.testing.assert_array_equal(here, there)
    starts = BatchedBody(name, threads=1)
    starts.reset(7, 5)
    single = BatchedBody(name, threads=1)
    for i in range(7):
        single.reset_to(starts.positions[i : i + 1], starts.velocities[i : i + 1])
        for t, row in enumerate(actions[:, i : i + 1]):
            for here, there in zip(single.step(row), (part[t, i] for part in plain), strict=True):
                np.testing.assert_array_equal(here[0], there)


def test_gymnasium_adaptor_plays_the_batch_s_episode(name):
    actions = actions_of(name, 60, 1, seed=2)
    batch = play(BatchedBody(name, threads=2), actions, seed=11)
    env = mo_gymnasium.make(f"d4morl-{name}-v0")
    env.reset(seed=11)
    for t, row in enumerate(actions[:, 0]):
        observation, reward, terminated, truncated, _ = env.step(row)
        np.testing.assert_array_equal(observation, batch[0][t, 0])
        np.testing.assert_array_equal(reward, batch[1][t, 0])
        assert terminated == batch[2][t, 0]
        assert not truncated
        if terminated:
            break


def test_ended_episodes_stay_while_others_go_on():
    batch = BatchedBody("walker2d", threads=1)
    batch.reset(2, 0)
    fallen = batch.positions
    fallen[0, 1] = 0.5
    batch.reset_to(fallen, np.zeros((2, 9)))
    first, rewards, terminated = batch.step(np.zeros((2, 6)))
    assert terminated.tolist() == [True, False]
    assert np.all(rewards != 0)
    second, rewards, terminated = batch.step(np.zeros((2, 6)))
    np.testing.assert_array_equal(second[0], first[0])
    assert np.any(second[1] != first[1])
    np.testing.assert_array_equal(rewards[0], 0)
    assert terminated.tolist() == [True, False]


def test_diverging_simulation_ends_where_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MuJoCo leaves a log
    batch = BatchedBody("swimmer", threads=1)
    batch.reset(2, 0)
    velocities = np.zeros((2, 5))
    velocities[0] = 1e12
    batch.reset_to(np.zeros((2, 5)), velocities)
    observations, rewards, terminated = batch.step(np.zeros((2, 2)))
    assert terminated.tolist() == [True, False]
    assert rewards[0, 0] == 0
    np.testing.assert_array_equal(observations[0, 3:], 1e12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"noise": -1.0}, "the noise must not be negative, but is -1.0"),
        ({"noise": np.nan}, "the noise must not be negative, but is nan"),
        ({"horizon": 0}, "the horizon must be at least 1, not 0"),
        ({"threads": 0}, "at least one thread is needed, not 0"),
    ],
)
def test_impossible_arguments_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        BatchedBody("swimmer", **arguments)


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (np.zeros((3, 2)), "2 episodes need 2 actions, not 3"),
        (np.zeros((2, 3)), "the swimmer takes actions of 2 numbers"),
        (np.array([[0, np.nan]] * 2), "the swimmer was given an action that is not finite"),
    ],
)
def test_impossible_actions_are_refused(actions, message):
    batch = BatchedBody("swimmer", threads=1)
    batch.reset(2, 0)
    with pytest.raises(InputError, match=message):
        batch.step(actions)


def test_no_episodes_are_refused():
    with pytest.raises(InputError, match="at least one episode is needed, not 0"):
        BatchedBody("swimmer", threads=1).reset(0, 0)


def test_missing_mujoco_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(InputError, match=r"pip install 'aetdice\[mujoco\]'"):
        gymnasium.make("d4morl-ant-v0")


def test_missing_assets_are_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"Gymnasium's assets; pip install 'aetdice\[mujoco\]'"):
        load_model(BODIES["ant"])


def test_asset_without_the_edited_element_is_refused():
    changed = dataclasses.replace(BODIES["ant"], edits={"actuator/muscle": {"gear": "100"}})
    with pytest.raises(InputError, match=r"ant.xml of the installed Gymnasium has no actuator/muscle"):
        load_model(changed)


def test_importing_the_library_does_not_import_mujoco():
    code = "import sys, aetdice; sys.exit('mujoco' in sys.modules or 'minari' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# Under Gymnasium.


def test_registered_id_and_spaces(name):
    env = mo_gymnasium.make(f"d4morl-{name}-v0")
    inner = env.unwrapped
    assert isinstance(inner, BodyEnvironment)
    assert inner.reward_dim == 2 == inner.reward_space.shape[0]
    observation, info = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    assert info["positions"].shape == (inner.body.positions,)
    env.action_space.seed(0)
    for _ in range(20):
        observation, reward, terminated, _, _ = env.step(env.action_space.sample())
        assert env.observation_space.contains(observation)
        assert inner.reward_space.contains(reward)
        if terminated:
            break


def test_every_body_is_registered():
    assert tuple(BODIES) == registration.BODIES


@pytest.mark.parametrize("heading", HEADINGS)
def test_page_has_mo_gymnasium_s_headings(name, heading):
    lines = mo_gymnasium.make(f"d4morl-{name}-v0").unwrapped.__doc__.splitlines()
    assert lines[lines.index(heading) + 1] not in ("", *HEADINGS)


def test_episode_is_truncated_at_the_horizon():
    env = gymnasium.make("d4morl-swimmer-v0")
    env.reset(seed=0)
    ends = [env.step(np.zeros(2))[2:4] for _ in range(500)]
    assert ends == [(False, False)] * 499 + [(False, True)]


def test_start_noise_may_be_zero():
    first, second = (gymnasium.make("d4morl-walker2d-v0", noise=0.0).reset(seed=s)[0] for s in (0, 1))
    np.testing.assert_array_equal(first, second)
    assert first[0] == 1.25


def test_resets_differ_unless_seeded(name):
    env = gymnasium.make(f"d4morl-{name}-v0")
    first, second = env.reset(seed=4)[0], env.reset()[0]
    assert np.any(first != second)
    np.testing.assert_array_equal(env.reset(seed=4)[0], first)


def test_reset_comes_first():
    env = BodyEnvironment("swimmer", render_mode="rgb_array")
    with pytest.raises(RuntimeError, match="call reset before step"):
        env.step(np.zeros(2))
    with pytest.raises(RuntimeError, match="call reset before render"):
        env.render()


def test_unknown_render_mode_is_refused():
    with pytest.raises(ValueError, match="unknown render mode 'human'; known: rgb_array"):
        BodyEnvironment("swimmer", render_mode="human")


def test_rgb_array_follows_the_body(name):
    env = gymnasium.make(f"d4morl-{name}-v0", render_mode="rgb_array")
    env.reset(seed=0)
    try:
        first = env.render()
    except InputError as error:
        pytest.skip(str(error))
    for _ in range(3):
        env.step(env.action_space.high)
    second = env.render()
    env.close()
    assert first.shape == second.shape == (480, 480, 3)
    assert first.dtype == np.uint8
    assert np.any(first != second)


# Any Gymnasium environment, in batches.


def test_gymnasium_batch_plays_each_environment_by_itself():
    make = lambda: gymnasium.make("d4morl-walker2d-v0")  # noqa: E731
    batch = GymnasiumBatch(make, objectives=("speed", "energy"), horizon=500)
    assert isinstance(batch, BatchedEnvironment)
    actions = actions_of("walker2d", 150, 3)
    observations, rewards, terminated = play(batch, actions, seed=1)
    assert terminated[-1].any()
    for i, seed in enumerate(np.random.SeedSequence(1).generate_state(3)):
        env = make()
        env.reset(seed=int(seed))
        for t, action in enumerate(actions[:, i]):
            observation, reward, ended, _, _ = env.step(action)
            np.testing.assert_array_equal(observations[t, i], observation)
            np.testing.assert_array_equal(rewards[t, i], reward)
            assert terminated[t, i] == ended
            if ended:
                np.testing.assert_array_equal(rewards[t + 1 :, i], 0)
                assert terminated[t:, i].all()
                break


def test_gymnasium_batch_numbers_objectives_and_takes_the_registered_limit():
    batch = GymnasiumBatch(lambda: gymnasium.make("d4morl-swimmer-v0", max_episode_steps=30))
    assert (batch.objectives, batch.horizon) == (("r0", "r1"), 30)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("CartPole-v1", {}, "the environment has no vector reward"),
        ("d4morl-swimmer-v0", {}, "the environment has no time limit; pass the horizon"),
        ("d4morl-swimmer-v0", {"horizon": 0}, "the horizon must be at least 1, not 0"),
        ("d4morl-swimmer-v0", {"objectives": ["a"], "horizon": 5}, "has 2 objectives, but 1 names"),
    ],
)
def test_gymnasium_batch_refuses(name, arguments, message):
    with pytest.raises(InputError, match=message):
        GymnasiumBatch(lambda: gymnasium.make(name), **arguments)


def test_gymnasium_batch_refuses_an_environment_that_stops_early():
    batch = GymnasiumBatch(lambda: gymnasium.make("d4morl-swimmer-v0", horizon=3), horizon=10)
    with pytest.raises(InputError, match=r"stops after 3 steps, before the horizon of 10; pass horizon=3"):
        play(batch, np.zeros((4, 2, 2)))
