"""The maze's heuristics and datasets: parked returns, schedules, replays and equal seeds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aetdice import InputError, load_dataset
from aetdice.datasets import COLLECTORS, environment_of, space_of
from aetdice.envs import PointMaze, point_maze_2obj, point_maze_3obj
from aetdice.envs.point_maze.collection import collect_point_maze
from aetdice.envs.point_maze.heuristics import schedule_returns, waypoints
from aetdice.envs.point_maze.layout import steps_from
from aetdice.objectives import in_float64
from aetdice.report.figures import return_distributions

BRANCHES = PointMaze("#######/#A.#.B#/#..S..#/#.#.#C#/#######", horizon=120)
MAZES = {"2obj": point_maze_2obj(), "3obj": point_maze_3obj(), "branches": BRANCHES}


@pytest.fixture(params=MAZES)
def maze(request) -> PointMaze:
    return MAZES[request.param]


def parked(maze: PointMaze) -> np.ndarray:
    """R of heading for each goal and staying there, a row per goal."""
    goals = len(maze.objectives)
    return schedule_returns(maze, np.arange(goals)[:, None], np.zeros((goals, 0), int))


# Schedules.


def test_parked_at_one_of_two_goals():
    """The returns that the paper's table implies for MO-PointMaze-2obj."""
    returns = parked(point_maze_2obj())
    np.testing.assert_allclose(returns, [[407, 0.11], [0.18, 152]], rtol=0.04)
    mixture = returns.mean(axis=0)
    assert np.sum(np.log(mixture)) == pytest.approx(9.65, abs=0.04)
    assert np.sum(mixture) == pytest.approx(280, rel=0.02)


def test_parked_at_one_of_three_goals():
    """And for MO-PointMaze-3obj."""
    returns = parked(point_maze_3obj())
    np.testing.assert_allclose(np.diag(returns), 226, rtol=0.02)
    assert np.max(returns[~np.eye(3, dtype=bool)]) < 0.07
    assert np.sum(np.log(returns.mean(axis=0))) == pytest.approx(12.97, abs=0.04)


def test_legs_of_no_length_are_left_out(maze):
    goals, end = len(maze.objectives), maze.horizon
    long = schedule_returns(
        maze, np.array([[0, 1, 0], [1, 0, 1], [goals, 0, 1]]), np.array([[end, end], [0, 0], [0, end]])
    )
    np.testing.assert_array_equal(long, parked(maze)[[0, 1, 0]])


def test_staying_at_the_start_earns_the_start_s_reward(maze):
    start = len(maze.objectives)
    returns = schedule_returns(maze, np.array([[start]]), np.zeros((1, 0), int))[0]
    expected = maze.horizon * in_float64(maze.reward)(np.array(maze.start))
    np.testing.assert_allclose(returns, expected, rtol=0.01)


def test_later_switch_is_more_for_the_first_goal_and_less_for_the_second():
    times = np.arange(100, 300, 20)[:, None]
    returns = schedule_returns(point_maze_2obj(), np.tile([0, 1], (len(times), 1)), times)
    assert np.all(np.diff(returns[:, 0]) > 0)
    assert np.all(np.diff(returns[:, 1]) < 0)


def test_waypoint_is_straight_ahead_and_nearer(maze):
    """Every cell's waypoint lies in its row or column, as many steps nearer as it is far."""
    for target, table in enumerate(waypoints(maze)[:-1]):
        goal = maze.goals[target]
        cells = {maze.middle((row, column)): (row, column) for row, column in np.ndindex(*maze.walls.shape)}
        steps = steps_from(maze.walls, cells[tuple(goal.tolist())])
        for middle, cell in cells.items():
            if steps[cell] < 0:
                continue
            towards = table[cell]
            run = np.abs(towards - middle)
            assert run.min() == 0
            assert steps[cell] - steps[cells[tuple(towards.tolist())]] == run.sum()
            assert run.sum() > 0 or steps[cell] == 0


@pytest.mark.parametrize(
    ("targets", "times", "message"),
    [
        ([[0, 1]], [[1, 2]], r"1 schedules of 2 legs need switch times of shape \(1, 1\), not \(1, 2\)"),
        ([[0, 4]], [[1]], "targets are numbered 0 to 2, the last being the start"),
        ([[-1, 0]], [[1]], "targets are numbered 0 to 2"),
    ],
)
def test_bad_schedule_is_refused(targets, times, message):
    with pytest.raises(InputError, match=message):
        schedule_returns(point_maze_2obj(), np.array(targets), np.array(times))


# Datasets.


def test_equal_seeds_equal_datasets(maze):
    first, again, other = (collect_point_maze(maze, 20, seed) for seed in (3, 3, 4))
    for part in ("observations", "actions", "rewards"):
        np.testing.assert_array_equal(getattr(first, part), getattr(again, part))
        assert not np.array_equal(getattr(first, part), getattr(other, part))


def test_dataset_is_what_the_environment_does(maze):
    """Its actions, played again, show its observations and pay its rewards."""
    episodes = collect_point_maze(maze, 10, seed=0)
    actions = episodes.actions.reshape(10, maze.horizon)

    def replay(maze: PointMaze, actions: jax.Array) -> tuple[jax.Array, jax.Array]:
        def advance(state: jax.Array, action: jax.Array) -> tuple:
            after, reward, _ = maze.step(jax.random.key(0), state, action)
            return after, (maze.observe(after), reward)

        start = jnp.broadcast_to(maze.reset(jax.random.key(0)), (10, 4))
        return jax.vmap(lambda state, actions: jax.lax.scan(advance, state, actions)[1])(start, actions)

    observations, rewards = in_float64(replay)(maze, actions)
    kept = episodes.observations.reshape(10, maze.horizon + 1, 4)
    np.testing.assert_allclose(kept[:, 1:], observations, atol=1e-6)
    np.testing.assert_allclose(episodes.rewards.reshape(rewards.shape), rewards, rtol=1e-9)
    assert episodes.objectives == maze.objectives
    assert episodes.truncated.all()
    assert not episodes.terminated.any()


def test_start_noise_reaches_the_dataset():
    episodes = collect_point_maze(point_maze_2obj(start_noise=0.25), 20)
    first = np.array([episode.observations[0] for episode in episodes])
    assert len(np.unique(first[:, :2], axis=0)) == 20


@pytest.mark.parametrize("make", [point_maze_2obj, point_maze_3obj])
def test_dataset_is_good_bad_and_varied(make):
    """Some park at each goal, some share their time nearly as well as can be, some earn next to nothing."""
    maze = make()
    returns = collect_point_maze(maze, 1500).returns
    best = np.diag(parked(maze))
    assert np.all(returns.max(axis=0) > 0.98 * best)
    assert np.all(np.mean(returns > 0.9 * best, axis=0) > 0.02)
    assert np.mean(np.all(returns > 0.02 * best, axis=1)) > 0.01
    assert np.mean(np.all(returns < 0.02 * best, axis=1)) > 0.01


def test_every_action_is_tried():
    assert set(collect_point_maze(point_maze_2obj(), 50).actions) == set(range(12))


def test_no_episodes_are_refused():
    with pytest.raises(InputError, match="at least one episode is needed, not 0"):
        collect_point_maze(point_maze_2obj(), 0)


@pytest.mark.parametrize("name", ["pointmaze-2obj", "pointmaze-3obj"])
def test_the_maze_has_a_dataset_of_its_own_and_no_exact_optimum(name):
    data = load_dataset(name, episodes=3, horizon=20)
    assert name in COLLECTORS
    assert len(data) == 3
    assert data.steps == 60
    assert space_of(environment_of(data.origin)) is None


# The figure.


@pytest.mark.parametrize("m", [2, 3])
def test_figure_of_returns_is_drawn(m, tmp_path):
    returns = np.random.default_rng(0).random((30, m))
    return_distributions(tmp_path / "returns.png", returns, [f"goal{i}" for i in range(m)], "Random")
    assert (tmp_path / "returns.png").read_bytes().startswith(b"\x89PNG")


def test_figure_of_one_objective_is_refused(tmp_path):
    with pytest.raises(InputError, match="at least two objectives with a name each"):
        return_distributions(tmp_path / "returns.png", np.zeros((3, 1)), ["only"], "One")
