"""The bodies' observations, rewards and terminations on states made by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from aetdice.envs.mujoco import BODIES, Move, find_body
from aetdice.errors import InputError

LAYOUTS = {
    # observation, action, frame skip, timestep, objectives
    "ant": (27, 8, 5, 0.01, ("x-speed", "y-speed")),
    "walker2d": (17, 6, 4, 0.002, ("speed", "energy")),
    "halfcheetah": (17, 6, 5, 0.01, ("speed", "energy")),
    "hopper": (11, 3, 5, 0.002, ("speed", "height")),
    "swimmer": (8, 2, 4, 0.01, ("speed", "energy")),
}


def move(name, before, after, action, duration=0.05):
    """One step of one body; positions not given are zero."""
    body = BODIES[name]
    rows = [np.pad(np.asarray(row, float), (0, body.positions - len(row)))[None] for row in (before, after)]
    return Move(*rows, np.asarray(action, float)[None], duration)


def ends(name, positions):
    body = BODIES[name]
    row = np.pad(np.asarray(positions, float), (0, body.positions - len(positions)))[None]
    return bool(body.ends(row, np.zeros((1, body.velocities)))[0])


@pytest.mark.parametrize("name", BODIES)
def test_layout(name):
    body = BODIES[name]
    assert (body.observation_size, body.action_size, body.frame_skip) == LAYOUTS[name][:3]
    assert body.objectives == LAYOUTS[name][4]
    assert body.horizon == 500


@pytest.mark.parametrize(
    ("name", "skipped", "limit"),
    [
        ("ant", 2, np.inf),
        ("walker2d", 1, 10),
        ("halfcheetah", 1, np.inf),
        ("hopper", 1, 10),
        ("swimmer", 2, np.inf),
    ],
)
def test_observation_is_positions_then_clipped_velocities(name, skipped, limit):
    body = BODIES[name]
    positions = np.arange(1.0, body.positions + 1)[None]
    velocities = np.linspace(-25, 25, body.velocities)[None]
    seen = body.observe(positions, velocities)[0]
    np.testing.assert_array_equal(seen[: body.positions - skipped], positions[0, skipped:])
    np.testing.assert_array_equal(seen[body.positions - skipped :], np.clip(velocities[0], -limit, limit))


@pytest.mark.parametrize(
    ("name", "before", "after", "action", "expected"),
    [
        ("ant", [1, 2], [1.1, 1.9], [0.5] * 8, [2 + 1 - 1, -2 + 1 - 1]),
        ("walker2d", [1], [1.1], [1, 1, 0.5, 0, 0, 0], [2 + 1, 5 - 2.25]),
        ("halfcheetah", [0], [0.1], [0.5] * 6, [2 + 1, 5 - 1.5]),
        ("halfcheetah", [0], [0.3], [0.5] * 6, [4 + 1, 5 - 1.5]),
        ("halfcheetah", [0], [-0.3], [0] * 6, [-6 + 1, 5]),
        ("hopper", [0, 1.25], [0.1, 1.5], [2, 2, 4], [3 + 1 - 4.8e-3, 3 + 1 - 4.8e-3]),
        ("hopper", [0, 1.5], [-0.1, 1.0], [0, 0, 0], [-3 + 1, -3 + 1]),
        ("swimmer", [0, 9], [0.1, 0], [1, 0.5], [2, 0.3 - 0.15 * 1.25]),
    ],
)
def test_rewards(name, before, after, action, expected):
    np.testing.assert_allclose(
        BODIES[name].rewards(move(name, before, after, action))[0], expected, atol=1e-12
    )


@given(arrays(np.float64, (4, 6), elements=st.floats(-3, 3, allow_nan=False)), st.sampled_from([0, 1]))
def test_five_minus_the_energy_reward_is_the_squared_action(actions, which):
    body = BODIES[("walker2d", "halfcheetah")[which]]
    clipped = body.clip(actions)
    still = np.zeros((4, 9))
    energy = body.rewards(Move(still, still, clipped, 0.05))[:, 1]
    np.testing.assert_allclose(5 - energy, np.sum(clipped**2, axis=1), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "positions", "ended"),
    [
        ("ant", [0, 0, 0.01, 0, 1, 0, 0], False),
        ("ant", [0, 0, np.nan], True),
        ("ant", [np.inf], True),
        ("walker2d", [0, 1.25, 0], False),
        ("walker2d", [0, 0.8, 0], True),
        ("walker2d", [0, 0.81, 0.99], False),
        ("walker2d", [0, 2.0, 0], True),
        ("walker2d", [0, 1.25, 1.0], True),
        ("walker2d", [0, 1.25, -1.0], True),
        ("walker2d", [0, np.nan, 0], True),
        ("halfcheetah", [0, 0, np.deg2rad(49.9)], False),
        ("halfcheetah", [0, -5, np.deg2rad(50)], True),
        ("halfcheetah", [0, 0, -np.deg2rad(50.1)], True),
        ("hopper", [0, 0.41, 0], False),
        ("hopper", [0, 0.4, 0], True),
        ("hopper", [0, 1.25, np.pi / 2], True),
        ("hopper", [0, 1.25, 0, -np.pi / 2], True),
        ("hopper", [0, 1.25, 0, 0, np.pi / 2], True),
        ("hopper", [0, 1.25, 0, 0, 0, -np.pi / 2], True),
        ("hopper", [0, 9, 1.57, 1.57, 1.57, 1.57], False),
        ("swimmer", [9, 9, 9, 9, 9], False),
    ],
)
def test_termination(name, positions, ended):
    assert ends(name, positions) is ended


def test_actions_are_clipped_to_the_limits():
    np.testing.assert_array_equal(BODIES["hopper"].clip(np.array([[9.0, -9.0, 9.0]])), [[2, -2, 4]])
    np.testing.assert_array_equal(BODIES["swimmer"].clip(np.array([[0.3, -1.2]])), [[0.3, -1]])


@pytest.mark.parametrize("name", BODIES)
def test_starts_do_not_depend_on_their_number(name):
    body = BODIES[name]
    rest = np.zeros(body.positions)
    few, many = (body.starts(rest, np.random.default_rng(3), count, 1e-3) for count in (2, 50))
    for here, there in zip(few, many, strict=True):
        np.testing.assert_array_equal(here, there[:2])
    assert np.abs(many[0]).max() <= 1e-3
    assert (np.abs(many[1]).max() > 1e-3) == body.gaussian_velocities
    assert np.all(many[0][:, 1] == 0) == body.exact_height
    for quiet in body.starts(rest, np.random.default_rng(3), 2, 0.0):
        np.testing.assert_array_equal(quiet, 0)


@pytest.mark.parametrize("name", ["ant", "d4morl-ant", "d4morl-ant-v0"])
def test_body_is_found_by_name_or_id(name):
    assert find_body(name) is BODIES["ant"]


def test_unknown_body_is_refused():
    with pytest.raises(
        InputError,
        match="unknown body 'dog'; known: ant, walker2d, halfcheetah, hopper, swimmer",
    ):
        find_body("dog")
