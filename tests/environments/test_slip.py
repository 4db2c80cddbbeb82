"""Slip: the taxi's moves and the ball's forces go astray as often as is said, and never without it."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import mo_gymnasium
import numpy as np
import pytest
from support.problems import drive
from support.refusals import complaint

from aetdice import InputError, TabularMOMDP, enumerate_space, esr, make_env, solve
from aetdice.cli import main
from aetdice.envs import FairTaxi, PointMaze, TwoStep, point_maze_2obj
from aetdice.envs.point_maze import sample_schedule_returns, schedule_returns
from aetdice.exact import Optimum
from aetdice.objectives import in_float64

SLIP = 0.3
SMALL = FairTaxi(
    size=3, origins=((0, 0), (2, 2)), destinations=((0, 2), (2, 0)), start=(1, 1), horizon=12, slip=SLIP
)
FIELD = PointMaze("#####/#...#/#.S.#/#..A#/#####", slip=SLIP)


# The taxi.


def test_a_move_goes_another_way_as_often_as_is_said_and_nothing_else_fails():
    """Every state and action, against the rules in plain Python."""
    tables = SMALL.tables()
    np.testing.assert_allclose(tables.probability.sum(axis=2), 1, rtol=1e-12)
    assert not tables.ends.any()
    for state, action in itertools.product(range(SMALL.states), range(6)):
        cab = tuple(tables.observations[state].tolist())
        ways = {action: 1.0} if action > 3 else dict.fromkeys(range(4), SLIP / 3) | {action: 1 - SLIP}
        expected = np.zeros(SMALL.states)
        for way, probability in ways.items():
            after, reward = drive(SMALL, cab, way)
            expected[SMALL.state_of(*after)] += probability
        found = np.bincount(
            tables.next_state[state, action], tables.probability[state, action], minlength=SMALL.states
        )
        np.testing.assert_allclose(found, expected, atol=1e-12)
        possible = tables.probability[state, action] > 0
        np.testing.assert_allclose(
            tables.reward[state, action][possible], [reward] * possible.sum(), rtol=1e-6
        )


@pytest.mark.parametrize("action", range(6))
def test_steps_follow_the_probabilities(action):
    tables, middle = SMALL.tables(), SMALL.state_of(1, 1, 0)
    keys = jax.random.split(jax.random.key(action), 4000)
    after, _, _ = jax.jit(jax.vmap(SMALL.step, (0, None, None)))(keys, middle, action)
    share = np.bincount(np.asarray(after), minlength=SMALL.states) / len(keys)
    expected = np.bincount(
        tables.next_state[middle, action], tables.probability[middle, action], minlength=SMALL.states
    )
    np.testing.assert_allclose(share, expected, atol=0.025)
    assert np.all(share[expected == 0] == 0)


@pytest.mark.parametrize(
    "env", [TwoStep(), FairTaxi(), FairTaxi(slip=0)], ids=["two-step", "taxi", "integer"]
)
def test_without_slip_there_is_one_outcome_and_the_key_does_not_matter(env):
    tables = env.tables()
    assert tables.probability.shape == (env.states, env.actions, 1)
    assert np.all(tables.probability == 1)
    states, actions = map(np.ravel, np.meshgrid(np.arange(env.states), np.arange(env.actions)))
    step, transition = jax.jit(jax.vmap(env.step, (None, 0, 0))), jax.jit(jax.vmap(env.transition))
    for key in map(jax.random.key, range(2)):
        found = step(key, states, actions)
        jax.tree.map(np.testing.assert_array_equal, found, transition(states, actions))


@pytest.fixture(scope="module")
def optimum() -> Optimum:
    return solve(enumerate_space(TabularMOMDP.from_environment(SMALL)), esr())


def test_the_optimum_with_slip_is_certified_and_below_the_one_without(optimum):
    sure = solve(TabularMOMDP.from_environment(make_env("fair-taxi", **ARGUMENTS)), esr())
    assert optimum.gap <= 1e-9
    assert optimum.value < sure.value - 0.5


ARGUMENTS = {
    "size": 3,
    "origins": ((0, 0), (2, 2)),
    "destinations": ((0, 2), (2, 0)),
    "start": (1, 1),
    "horizon": 12,
}


def test_the_optimal_policy_earns_its_value_in_the_environment(optimum):
    """Played in JAX, where the solver's tables are not looked at: ESR within four standard errors."""
    episodes, step = 4000, jax.jit(jax.vmap(SMALL.step))
    state, accrued = np.full(episodes, SMALL.initial_state), np.zeros((episodes, 2))
    for t, layer in enumerate(optimum.policy.space.layers[:-1]):
        places = {
            (s, *a): row
            for row, (s, a) in enumerate(
                zip(layer.state.tolist(), layer.accrued.round(6).tolist(), strict=True)
            )
        }
        rows = [places[s, *a] for s, a in zip(state.tolist(), accrued.round(6).tolist(), strict=True)]
        chosen = optimum.policy.probabilities[t][rows]
        assert np.all(chosen.max(axis=1) == 1)  # an ESR optimum needs no randomness
        keys = jax.random.split(jax.random.key(t), episodes)
        after, reward, _ = step(keys, jnp.asarray(state), jnp.asarray(chosen.argmax(axis=1)))
        state, accrued = np.asarray(after), accrued + np.asarray(reward, float)
    worth = in_float64(eqx.filter_vmap(esr().utility))(accrued).sum(axis=1)
    error = worth.std() / np.sqrt(episodes)
    assert worth.mean() == pytest.approx(optimum.value, abs=4 * error)
    assert error < 0.05


# The mazes.


@pytest.mark.parametrize("slip", [0.0, SLIP])
def test_a_force_is_another_action_s_as_often_as_is_said(slip):
    maze, action = PointMaze("/".join(FIELD.rows), slip=slip), 7
    keys = jax.random.split(jax.random.key(0), 6000)
    start = jnp.zeros(4)
    states, _, _ = jax.jit(jax.vmap(maze.step, (0, None, None)))(keys, start, action)
    pushed = jax.jit(jax.vmap(maze.push, (None, 0)))(start, jnp.asarray(maze.forces, float))
    off = np.abs(np.asarray(states)[:, None] - np.asarray(pushed)[None]).sum(axis=2)
    share = np.bincount(off.argmin(axis=1), minlength=maze.actions) / len(keys)
    expected = np.full(maze.actions, slip / maze.actions) + (1 - slip) * np.eye(maze.actions)[action]
    assert off.min(axis=1).max() < 1e-6
    np.testing.assert_allclose(share, expected, atol=0.02 if slip else 0)


def test_a_schedule_s_episodes_differ_by_what_slips():
    targets, times = np.array([[0], [0]]), np.zeros((2, 0), int)
    returns = sample_schedule_returns(FIELD, targets, times, 5)
    assert returns.shape == (2, 5, 1)
    np.testing.assert_array_equal(returns[0], returns[1])
    assert len(np.unique(returns[0])) == 5
    assert not np.array_equal(returns, sample_schedule_returns(FIELD, targets, times, 5, seed=1))
    sure = PointMaze("/".join(FIELD.rows))
    alone = schedule_returns(sure, targets, times)
    np.testing.assert_allclose(sample_schedule_returns(sure, targets, times, 3), alone[:, None].repeat(3, 1))
    assert returns.mean() < alone.mean()


# Arguments and options.


@pytest.mark.parametrize("slip", [-0.1, 1, 1.5, float("nan")])
@pytest.mark.parametrize("make", [FairTaxi, point_maze_2obj])
def test_bad_slip_is_refused(make, slip):
    with pytest.raises(InputError, match="slip must be at least 0 and below 1"):
        make(slip=slip)


@pytest.mark.parametrize("name", ["fair-taxi-v0", "mo-pointmaze-2obj-v0", "mo-pointmaze-3obj-v0"])
def test_slip_is_an_argument_of_the_id(name):
    assert mo_gymnasium.make(name, slip=0.2).unwrapped.environment.slip == 0.2
    assert mo_gymnasium.make(name).unwrapped.environment.slip == 0


def test_a_slippery_schedule_has_no_one_return():
    with pytest.raises(InputError, match="sample_schedule_returns gives those of several episodes"):
        schedule_returns(FIELD, np.array([[0]]), np.zeros((1, 0), int))
    with pytest.raises(InputError, match="at least one episode is needed, not 0"):
        sample_schedule_returns(FIELD, np.array([[0]]), np.zeros((1, 0), int), 0)


@pytest.mark.parametrize("env", ["fair-taxi", "pointmaze-2obj", "pointmaze-3obj"])
def test_slip_and_shifts_reach_the_dataset_from_the_command_line(env, monkeypatch, tmp_path, capsys):
    def asked(dataset, objectives, **others):
        raise InputError(f"{dataset.origin['arguments']} {dataset.origin['quality']}")

    monkeypatch.setattr("aetdice.cli.train.train", asked)
    command = f"train --env {env} --objective lsr --dataset-episodes 2 --dataset shifts --slip 0.25 --out"
    assert complaint(capsys, *command.split(), str(tmp_path / "run")) == "{'slip': 0.25} shifts"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--env fair-taxi --slip 1", "slip must be at least 0 and below 1, not 1.0"),
        (
            "--env d4morl-ant --slip 0.1",
            "d4morl-ant does not read --slip; it belongs to fair-taxi, pointmaze-2obj, pointmaze-3obj",
        ),
        ("--env pointmaze-2obj --size 3", "pointmaze-2obj does not read --size; it belongs to fair-taxi"),
    ],
)
def test_an_option_that_is_not_read_is_refused(options, message, tmp_path, capsys):
    command = ("train", "--objective", "lsr", *options.split(), "--out", str(tmp_path / "run"))
    assert complaint(capsys, *command) == message


def test_solve_takes_slip(capsys):
    layout = (
        "--size 3 --origins 0,0 2,2 --destinations 0,2 2,0 --start 1,1 --horizon 8 --objective lsr --json"
    )
    values = []
    for slip in ("0", "0.4"):
        main(["solve", "fair-taxi", *layout.split(), "--slip", slip])
        values.append(float(capsys.readouterr().out.split('"value": ')[1].split(",")[0]))
    assert values[1] < values[0]
