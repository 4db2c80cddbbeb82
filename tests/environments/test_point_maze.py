"""MO-PointMaze: its physics against MuJoCo's, its rules, and maps that are refused."""

import os

import jax
import jax.numpy as jnp
import mo_gymnasium
import mujoco
import numpy as np
import pytest
from gymnasium_robotics.envs.maze.point_maze import PointMazeEnv
from hypothesis import given
from hypothesis import strategies as st

from aetdice import InputError
from aetdice.envs import PointMaze, point_maze_2obj, point_maze_3obj
from aetdice.envs.point_maze.contacts import MASS, RADIUS, constrained_acceleration, impedance, nearest_blocks
from aetdice.envs.point_maze.layout import read_map, steps_from, walls_of
from aetdice.envs.point_maze.maze import SPEED_LIMIT
from aetdice.objectives import in_float64

PILLARS = PointMaze(
    """
    #######
    #A.#..#
    #.....#
    ##.S.##
    #.#...#
    #...#B#
    #######
    """
)
MAZES = {"2obj": point_maze_2obj(), "3obj": point_maze_3obj(), "pillars": PILLARS}
SUMS_MARGINS = int(mujoco.__version__.split(".")[0]) >= 4
NORTH, SOUTH, EAST, WEST = (3 * direction + 2 for direction in range(4))
"""The actions of full magnitude."""


@pytest.fixture(params=MAZES)
def maze(request) -> PointMaze:
    return MAZES[request.param]


def random_starts(maze: PointMaze, episodes: int, rng: np.random.Generator) -> np.ndarray:
    """States anywhere the ball touches no wall, some of them at full speed."""
    cells = rng.choice(np.argwhere(~maze.walls), episodes)
    middles = np.array([maze.middle((int(row), int(column))) for row, column in cells])
    return np.column_stack(
        [middles + rng.uniform(-0.35, 0.35, (episodes, 2)), rng.uniform(-5, 5, (episodes, 2))]
    )


def random_actions(maze: PointMaze, episodes: int, rng: np.random.Generator) -> np.ndarray:
    """Actions held for 1 to 40 steps, so that the ball reaches the walls."""
    fresh = rng.integers(maze.actions, size=(episodes, maze.horizon))
    hold = rng.integers(1, 41, size=(episodes, 1))
    return np.take_along_axis(fresh, np.arange(maze.horizon)[None] // hold, axis=1)


def play(maze: PointMaze, states: jax.Array, actions: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The states after every step, and the rewards, of many episodes."""

    def episode(state: jax.Array, actions: jax.Array) -> tuple[jax.Array, jax.Array]:
        def advance(state: jax.Array, action: jax.Array) -> tuple:
            state, reward, _ = maze.step(jax.random.key(0), state, action)
            return state, (state, reward)

        return jax.lax.scan(advance, state, actions)[1]

    return jax.vmap(episode)(states, actions)


# Physics, against MuJoCo's.


@pytest.fixture
def reference(maze):
    """Gymnasium-Robotics' environment of the same maze, without the file that it leaves behind."""
    env = PointMazeEnv(maze_map=maze.walls.astype(int).tolist())
    yield env.point_env
    env.close()
    os.remove(env.tmp_xml_file_path)


def compare(maze: PointMaze, reference, tolerance: float) -> None:
    """40 episodes of 300 steps side by side, with walls hit and more than one at a time."""
    rng = np.random.default_rng(0)
    starts, actions = random_starts(maze, 40, rng), random_actions(maze, 40, rng)
    ours, _ = in_float64(play)(maze, starts, actions)
    touching = []
    for start, episode, states in zip(starts, actions, ours, strict=True):
        reference.set_state(start[:2], start[2:])
        theirs = []
        for action in episode:
            theirs.append(reference.step(maze.forces[action])[0])
            touching.append(reference.data.ncon - 1)  # the ball always rests on the ground
        np.testing.assert_allclose(states, theirs, rtol=0, atol=tolerance)
    assert np.sum(np.array(touching) >= 1) > 2000
    assert np.sum(np.array(touching) >= 2) > 40


@pytest.mark.parametrize("margin", [0.004, 0.002], ids=["margins-add", "larger-margin-counts"])
def test_episodes_are_those_of_mujoco(maze, reference, margin):
    """To 1e-6, by either rule for margins, when MuJoCo's solver goes on until it has converged."""
    reference.model.geom_margin[:] = margin / 2 if SUMS_MARGINS else margin
    reference.model.opt.tolerance = 0
    compare(PointMaze("/".join(maze.rows), maze.distance, contact_margin=margin), reference, 1e-6)


def test_episodes_are_those_of_the_installed_environment(maze, reference):
    """To the tolerance at which its solver stops by default."""
    margin = 0.004 if SUMS_MARGINS else 0.002
    compare(PointMaze("/".join(maze.rows), maze.distance, contact_margin=margin), reference, 1e-5)
    assert reference.data.contact[0].includemargin == margin


@given(
    st.lists(st.floats(-30, 30), min_size=4, max_size=4),
    st.lists(st.floats(-3.1, 3.1), min_size=3, max_size=3),
    st.lists(st.floats(-0.06, 0.01), min_size=3, max_size=3),
)
def test_acceleration_minimises_mujoco_s_cost(motion, angles, depths):
    """M(a - free) = Σ D_i max(0, reference_i - n_i·a) n_i over the touching blocks: gradient zero."""
    free, velocity = np.array(motion[:2]), np.array(motion[2:]) / 6
    normals, depths = np.column_stack([np.cos(angles), np.sin(angles)]), np.array(depths)
    found = in_float64(constrained_acceleration)(free, velocity, normals, depths)
    deep = np.minimum(depths, 0)
    strength = in_float64(impedance)(deep)
    reference = -2 / (0.95 * 0.02) * normals @ velocity - strength * deep / (0.95 * 0.02) ** 2
    weight = np.where(depths < 0, MASS * strength / (1 - strength), 0)
    push = weight * np.maximum(reference - normals @ found, 0)
    np.testing.assert_allclose(MASS * (found - free), push @ normals, rtol=1e-8, atol=1e-6)


def test_ball_stays_out_of_the_walls_and_within_its_bounds(maze):
    """However it is pushed, it enters a wall by hardly more than one step's way at full speed."""
    rng = np.random.default_rng(1)
    starts, actions = random_starts(maze, 200, rng), random_actions(maze, 200, rng)
    states, rewards = (np.asarray(part) for part in in_float64(play)(maze, starts, actions))
    gaps = in_float64(jax.vmap(lambda at: nearest_blocks(at, maze.walls)[1]))(states[..., :2].reshape(-1, 2))
    assert gaps.min() > -0.06
    low, high = maze.observation_bounds
    assert np.all((states >= low) & (states <= high))
    assert np.all((rewards > 0) & (rewards <= np.array(maze.scales)))


def test_single_precision_plays_the_same_free_motion():
    rng = np.random.default_rng(2)
    actions = np.tile([NORTH, SOUTH, SOUTH, NORTH, EAST, WEST, WEST, EAST], 30)[None]
    start = np.concatenate([PILLARS.start, [0.0, 0.0]])[None] + rng.uniform(-0.01, 0.01, (1, 4))
    exact, _ = in_float64(play)(PILLARS, start, actions)
    rounded, rewards = play(PILLARS, jnp.asarray(start, jnp.float32), jnp.asarray(actions))
    assert rounded.dtype == rewards.dtype == jnp.float32
    assert exact.dtype == np.float64
    np.testing.assert_allclose(rounded, exact, atol=1e-4)


def test_precision_is_that_of_the_process():
    assert PILLARS.reset(jax.random.key(0)).dtype == jnp.float32
    with jax.enable_x64(True):
        assert PILLARS.reset(jax.random.key(0)).dtype == jnp.float64


# Rules.


@pytest.mark.parametrize(
    ("action", "way"),
    [
        pytest.param(NORTH, (0, 1), id="north"),
        pytest.param(SOUTH, (0, -1), id="south"),
        pytest.param(EAST, (1, 0), id="east"),
        pytest.param(WEST, (-1, 0), id="west"),
    ],
)
def test_action_pushes_its_way(action, way):
    """Half a metre in a fifth of a second, as 100 N on 4.19 kg do."""
    states, _ = play(PILLARS, jnp.zeros((1, 4)), jnp.full((1, 20), action))
    moved = np.array(states[0, -1, :2])
    assert moved @ way == pytest.approx(0.5 * 100 / MASS * 0.2 * 0.21, rel=0.05)
    assert abs(np.cross([*moved, 0], [*way, 0])[2]) < 1e-6


@pytest.mark.parametrize(("action", "magnitude"), [(6, 0.2), (7, 0.6), (8, 1.0)])
def test_magnitude_scales_the_push(action, magnitude):
    state, _, _ = PILLARS.step(jax.random.key(0), jnp.zeros(4), jnp.asarray(action))
    assert float(state[2]) == pytest.approx(magnitude * 100 * 0.01 / (MASS + 0.01), rel=1e-5)


def test_speed_is_limited_before_every_step():
    fast = jnp.asarray([0.0, 0.0, 9.0, -9.0])
    state, _, _ = PILLARS.step(jax.random.key(0), fast, jnp.asarray(EAST))
    assert float(state[3]) == pytest.approx(-SPEED_LIMIT * MASS / (MASS + 0.01), rel=1e-5)


def test_reward_falls_by_e_at_the_distance_d0():
    maze = point_maze_2obj()
    goal = jnp.asarray(maze.goals[0])
    np.testing.assert_allclose(maze.reward(goal)[0], 2, rtol=1e-6)
    np.testing.assert_allclose(maze.reward(goal + jnp.asarray([0.0, 0.4]))[0], 2 / np.e, rtol=1e-5)
    np.testing.assert_allclose(maze.reward(jnp.asarray(maze.goals[1]))[1], 1, rtol=1e-6)


def test_goals_and_start_lie_where_the_map_says():
    maze = point_maze_2obj()
    np.testing.assert_array_equal(maze.goals, [[1.5, -1.5], [0.5, 1.5]])
    assert maze.start == (-1.5, -1.5)
    assert maze.objectives == ("goalA", "goalB")
    assert point_maze_3obj().objectives == ("goalA", "goalB", "goalC")


@pytest.mark.parametrize("noise", [0.0, 0.25])
def test_start_noise_fills_its_square(noise):
    maze = point_maze_2obj(start_noise=noise)
    states = np.asarray(jax.vmap(maze.reset)(jax.random.split(jax.random.key(0), 500)))
    assert np.all(np.abs(states[:, :2] - maze.start) <= noise)
    assert np.all(states[:, 2:] == 0)
    np.testing.assert_allclose(np.ptp(states[:, :2], axis=0), 2 * noise, rtol=0.05)


def test_own_magnitudes_make_own_actions():
    maze = PointMaze("#####/#S.A#/#####", magnitudes=(0.0, 0.5), horizon=7)
    assert (maze.actions, maze.horizon, maze.scales) == (8, 7, (1.0,))
    np.testing.assert_array_equal(maze.forces[[4, 5, 6, 7]], [[0, 0], [0.5, 0], [0, 0], [-0.5, 0]])


def test_id_takes_a_maze_of_one_s_own():
    env = mo_gymnasium.make("mo-pointmaze-3obj-v0", layout="#####/#SBA#/#####", horizon=4)
    assert env.unwrapped.reward_dim == 2
    assert env.unwrapped.environment.horizon == 4


def test_text_shows_the_ball():
    drawn = PILLARS.text(jnp.asarray([-0.4, 1.3, 0.0, -0.25]))
    assert drawn == (
        "#######\n#A.#..#\n#..o..#\n##.S.##\n#.#...#\n#...#B#\n#######\n"
        "at (-0.4000, +1.3000) m, speed (+0.0000, -0.2500) m/s\n"
    )


def test_picture_shows_the_way():
    env = mo_gymnasium.make("mo-pointmaze-2obj-v0", render_mode="rgb_array")
    env.reset(seed=0)
    for _ in range(40):
        env.step(EAST)
    state = env.unwrapped._path[-1]
    with_way, without = env.render(), env.unwrapped.environment.picture(state)
    changed = np.argwhere(np.any(with_way != without, axis=2)) / 64
    assert np.all((changed[:, 0] > 4.4) & (changed[:, 0] < 4.6))
    assert changed[:, 1].min() < 1.6
    assert changed[:, 1].max() < 3 + float(state[0])


# Maps and arguments that are refused.


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ("", "the map is empty; draw walls as #"),
        ("###/#S#/####", "not a rectangle: row 2 has 4 cells, row 0 has 3"),
        ("#####/#S?A#/#####", "unknown character '\\?' in row 1, column 2 of the map; known: # wall, . free"),
        ("#####/#S.a#/#####", "unknown character 'a' in row 1, column 3"),
        ("#####/#S.A./#####", "the map is open at row 1, column 4; its border must be all walls"),
        ("#.###/#S.A#/#####", "the map is open at row 0, column 1"),
        ("#####/#..A#/#####", "exactly one start S, not 0"),
        ("#####/#SSA#/#####", "exactly one start S, not 2"),
        ("####/#S.#/####", "at least one goal, A"),
        ("#####/#S.B#/#####", "a goal B but no goal A; goals are lettered without gaps"),
        ("######/#SABB#/######", "2 goals B; each letter is one goal"),
        ("######/#SA#B#/######", "goal B cannot be reached from the start S"),
    ],
)
def test_bad_map_is_refused(layout, message):
    with pytest.raises(InputError, match=message):
        PointMaze(layout)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scales": (1.0,)}, "scales needs 2 positive numbers, one per goal"),
        ({"scales": (1.0, 0.0)}, "scales needs 2 positive numbers"),
        ({"magnitudes": ()}, "magnitudes must be numbers between 0 and 1"),
        ({"magnitudes": (0.5, 1.5)}, "magnitudes must be numbers between 0 and 1"),
        ({"distance": 0.0}, "distance must be positive, not 0.0"),
        ({"horizon": 0}, "a whole number of steps, at least 1, not 0"),
        ({"start_noise": 0.45}, "start_noise must lie between 0 and 0.4"),
        ({"contact_margin": -0.1}, "contact_margin must lie between 0 and 0.1"),
    ],
)
def test_bad_argument_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        point_maze_2obj(**arguments)


@given(st.integers(0, 2**32 - 1))
def test_breadth_first_distances_solve_bellman_s_equation(seed):
    """d = 0 at the source, elsewhere 1 + the least of the neighbours'; -1 just where no path leads."""
    rng = np.random.default_rng(seed)
    walls = np.pad(rng.random((5, 6)) < 0.4, 1, constant_values=True)
    walls[3, 3] = False
    steps = steps_from(walls, (3, 3))
    far = np.where(steps < 0, np.inf, steps)
    around = np.min([np.roll(far, shift, axis) for axis in (0, 1) for shift in (1, -1)], axis=0)
    expected = np.where(walls, np.inf, 1 + around)
    expected[3, 3] = 0
    np.testing.assert_array_equal(far, expected)


def test_map_may_be_indented_or_on_one_line():
    rows = read_map("\n  ####\n  #SA#\n  ####\n\n")
    assert rows == read_map("#### / #SA# / ####") == ("####", "#SA#", "####")
    assert walls_of(rows).sum() == 10
    assert RADIUS == 0.1
