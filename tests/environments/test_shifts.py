"""Data in shifts: no episode serves two groups, but parts of several, joined, are as good as can be."""

import json

import numpy as np
import pytest

from aetdice import Episodes, InputError, TabularMOMDP, esr, load_dataset, ser, solve
from aetdice.datasets import dataset_of
from aetdice.envs import FairTaxi, PointMaze, point_maze_2obj, point_maze_3obj
from aetdice.envs.point_maze.layout import cell_of
from aetdice.envs.point_maze.schedules import drive_all, tours
from aetdice.envs.point_maze.shifts import quiet_cells
from aetdice.exact.mixtures import best_mixture

OPTIMA = {"ESR": 1.0986, "SER": 1.8124}
"""Of the default taxi without slip."""
OBJECTIVES = {"ESR": esr(), "SER": ser()}
MAZES = {"pointmaze-2obj": point_maze_2obj(), "pointmaze-3obj": point_maze_3obj()}
NAMES = ["fair-taxi", *MAZES]
PARKED = {"pointmaze-2obj": (407, 152), "pointmaze-3obj": (226, 226, 226)}
"""Returns of the way from the start to a goal and a stay there to the end."""
ESR_OF_MAZES = esr(threshold=0.01)


# The taxi.


@pytest.fixture(scope="module", params=[0.0, 0.1], ids=["sure", "slip"])
def taxi_data(request) -> Episodes:
    return load_dataset("fair-taxi", quality="shifts", slip=request.param)


def test_an_episode_serves_one_group_in_one_shift(taxi_data):
    rewards = taxi_data.rewards.reshape(2000, 2, 25, 2)
    assert rewards.min() == 0  # nothing is done wrong
    earned = rewards.sum(axis=2) > 0
    assert np.all(earned.reshape(2000, 4).sum(axis=1) <= 1)
    share = earned.mean(axis=0)
    np.testing.assert_allclose(share, 0.25, atol=0.03)


def test_who_wanders_only_moves(taxi_data):
    """Drivers of the second shift have nobody on board before it, and nobody is picked up off duty."""
    actions = taxi_data.actions.reshape(2000, 2, 25)
    works = (actions > 3).any(axis=2)
    assert np.all(works.sum(axis=1) <= 1)


def joined(taxi: FairTaxi, data: Episodes) -> TabularMOMDP:
    """The taxi with the actions that were recorded at the same time in the same state, and no others.

    States are (time, state); where nothing was recorded, the episode ends.
    """
    horizon, size, tables = taxi.horizon, taxi.states, taxi.tables()
    numbers = {tuple(row): state for state, row in enumerate(tables.observations.tolist())}
    states = np.array([numbers[tuple(row)] for row in data.observations.tolist()]).reshape(-1, horizon + 1)
    recorded = np.zeros((horizon, size, taxi.actions), dtype=bool)
    recorded[np.tile(np.arange(horizon), len(data)), states[:, :-1].ravel(), data.actions] = True

    seen = recorded.any(axis=2)
    taken = np.where(recorded, np.arange(taxi.actions), recorded.argmax(axis=2)[..., None])
    after = (np.arange(1, horizon + 1) * size)[:, None, None] + tables.next_state[
        np.arange(size)[None, :, None], taken, 0
    ]
    end = horizon * size
    after = np.where(seen[..., None], np.minimum(after, end), end).reshape(end, -1)
    reward = tables.reward[np.arange(size)[None, :, None], taken, 0] * seen[..., None, None]
    return TabularMOMDP.from_arrays(
        np.vstack([after, np.full((1, taxi.actions), end)]),
        np.concatenate([reward.reshape(end, taxi.actions, -1), np.zeros((1, taxi.actions, 2))]),
        taxi.initial_state,
        horizon,
        np.arange(end + 1) == end,
    )


@pytest.fixture(scope="module")
def sure_data() -> Episodes:
    return load_dataset("fair-taxi", quality="shifts")


@pytest.fixture(scope="module")
def parts(sure_data) -> TabularMOMDP:
    return joined(FairTaxi(), sure_data)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_recorded_parts_make_the_optimum_and_recorded_episodes_do_not(name, parts, sure_data):
    """By 1.2 for ESR, by 1.1 for SER, whatever the mixture of episodes."""
    assert solve(parts, OBJECTIVES[name]).value == pytest.approx(OPTIMA[name], abs=1e-3)
    assert best_mixture(OBJECTIVES[name], sure_data.returns).value < OPTIMA[name] - 1


# The mazes.


@pytest.fixture(scope="module", params=MAZES)
def maze(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def maze_data(maze) -> Episodes:
    return load_dataset(maze, quality="shifts", episodes=600)


@pytest.mark.parametrize("slip", [0.0, 0.1])
def test_a_maze_episode_earns_from_one_goal_for_a_while(maze, slip):
    returns = load_dataset(maze, quality="shifts", episodes=200, slip=slip).returns
    assert np.all(returns.max(axis=0) > 0.25 * np.array(PARKED[maze]))
    assert np.all(returns.max(axis=0) < 0.7 * np.array(PARKED[maze]))
    assert np.sort(returns, axis=1)[:, -2].max() < 8


def test_recorded_maze_episodes_are_far_below_a_schedule(maze, maze_data):
    """By 2.6 for two goals, by 5.7 for three."""
    env = MAZES[maze]
    schedules = drive_all(env, tours(len(env.objectives)), 20).returns
    best, recorded = (best_mixture(ESR_OF_MAZES, rows).value for rows in (schedules, maze_data.returns))
    assert recorded < best - 2


def test_two_joined_maze_episodes_are_far_above_any(maze, maze_data):
    """Joined where they are at the same time in the same place at the same speed, nearly."""
    count, horizon = len(maze_data), MAZES[maze].horizon
    states = maze_data.observations.reshape(count, horizon + 1, 4) / [0.2, 0.2, 1.0, 1.0]
    accrued = np.cumsum(maze_data.rewards.reshape(count, horizon, -1), axis=1)
    best = -np.inf
    for t in range(150, 240, 10):
        near = np.abs(states[:, None, t] - states[None, :, t]).max(axis=2) < 1
        first, second = np.nonzero(near)
        returns = accrued[first, t - 1] + accrued[second, -1] - accrued[second, t - 1]
        best = max(best, np.log(np.maximum(returns, 0.01)).sum(axis=1).max())
    assert best > best_mixture(ESR_OF_MAZES, maze_data.returns).value + 1


def test_drivers_wait_clear_of_the_other_goals():
    maze = point_maze_2obj()
    row, column = cell_of(maze.rows, "A")
    assert (row - 1, column) in quiet_cells(maze, "A")
    assert (row - 1, column) not in quiet_cells(maze, "B")
    crowded = PointMaze("#####/#BSA#/#####")
    assert quiet_cells(crowded, "A") == [cell_of(crowded.rows, "S")]


# All of them.


@pytest.mark.parametrize("slip", [0.0, 0.1])
@pytest.mark.parametrize("name", NAMES)
def test_equal_seeds_equal_shifts(name, slip):
    first, other = (
        load_dataset(name, quality="shifts", episodes=8, seed=seed, slip=slip, horizon=40) for seed in (3, 4)
    )
    again = dataset_of(json.loads(json.dumps(first.origin)))
    assert again.sha256 == first.sha256 != other.sha256
    assert first.origin["quality"] == "shifts"
    sure = load_dataset(name, quality="shifts", episodes=8, seed=3, horizon=40)
    assert (sure.sha256 == first.sha256) == (slip == 0)


def test_the_taxi_s_mixed_data_without_slip_is_that_of_earlier_versions():
    assert load_dataset("fair-taxi", episodes=50, slip=0).sha256.startswith("14250790389872780b4eea0f")


@pytest.mark.parametrize("name", NAMES)
def test_mixed_is_the_default(name):
    plain, named = (load_dataset(name, episodes=4, horizon=20, **more) for more in ({}, {"quality": "mixed"}))
    assert plain.sha256 == named.sha256
    with pytest.raises(InputError, match="unknown quality 'night'; known: mixed, shifts"):
        load_dataset(name, episodes=4, quality="night")
