"""Optima of the strangers by hand, and the behaviours of their data."""

import math
from dataclasses import replace

import numpy as np
import pytest

from aetdice import bsr, enumerate_space, lsr, solve
from aetdice.envs import PointMaze
from aetdice.envs.point_maze import schedule_returns
from aetdice.exact.tabular_policy import deterministic
from aetdice.objectives import in_float64
from aetdice.studies.strangers.chance import random_momdp
from aetdice.studies.strangers.finite import collect_table, planners
from aetdice.studies.strangers.mazes import maze_world
from aetdice.studies.strangers.mo_gym import TABLES
from aetdice.studies.strangers.mo_gym_tables import (
    bottles,
    deep_sea,
    fishwood,
    four_rooms,
    fruit_tree,
    fruits,
    gathering,
)
from aetdice.studies.strangers.problem import fair_objectives
from aetdice.studies.strangers.reaching import HALF, TASKS, Reaching, Task, collect, lattice
from aetdice.studies.strangers.stepping import worst_deviation

ESR = bsr(0.0)


def best(table, objective=ESR):
    return solve(table.momdp(), objective, check=False).value


def test_the_deepest_treasure_is_not_the_best_where_time_is_scarce():
    treasures = {0.7: 1, 8.2: 3, 11.5: 5, 14.0: 7, 15.1: 8, 16.1: 9, 19.6: 13, 20.3: 14, 22.4: 17, 23.7: 19}
    objective = fair_objectives(level=(0.0, -30.0), scale=5.0)["ESR"]
    by_hand = max(
        (float(in_float64(objective)(np.array([[value, -steps]]))), value)
        for value, steps in treasures.items()
    )
    assert best(deep_sea(30), objective) == pytest.approx(by_hand[0], abs=1e-6)
    assert by_hand[1] == 16.1


def test_the_best_fruit_is_the_one_with_the_largest_product():
    large = [fruit for fruit in fruits(5) if min(fruit) >= 1]
    assert best(fruit_tree(5)) == pytest.approx(max(sum(map(math.log, fruit)) for fruit in large), abs=1e-6)


def test_both_resources_are_fetched_around_the_enemies():
    """Home, gold and diamond without meeting anyone: 6 steps, 7 and 5."""
    assert best(gathering(18), lsr((10.0, 1.0, 1.0))) == pytest.approx(2.0)
    assert best(gathering(17), lsr((10.0, 1.0, 1.0))) < 2.0


def test_one_thing_at_a_time():
    """The first step brings wood, whatever is done; so does each one after that was spent in the woods."""
    assert best(fishwood(10), lsr((0.0, 1.0))) == pytest.approx(9.0)
    assert best(fishwood(10), lsr((1.0, 0.0))) == pytest.approx(0.9)


def test_bottles_are_carried_in_two_ways():
    """Both at once take 10 steps if none drops: three moves with a chance of .1 each."""
    assert best(bottles(10), lsr((0.0, 1.0, 0.0))) == pytest.approx(50 * 0.9**3 + 25 * (1 - 0.9**3))
    assert best(bottles(18), lsr((0.0, 1.0, 0.0))) == pytest.approx(50.0)


def test_a_room_is_left_with_all_there_is_on_the_way():
    rooms = ("1G", "_2")
    assert best(four_rooms(rooms, 2), lsr()) == pytest.approx(4.0)
    assert best(four_rooms(rooms, 4), lsr()) == pytest.approx(5.0)


def test_who_reaches_one_goal_and_then_the_other_loses_only_the_ways():
    """Three steps to the first, six to the other: 13 of 20 steps are in a goal, 6 and 7."""
    found = solve(lattice(TASKS["reach-line"]), ESR, check=False)
    assert found.value == pytest.approx(math.log(6) + math.log(7))


@pytest.mark.parametrize("task", [Task(((-1,), (2,)), 8), Task(((-1, 1), (2, 0)), 8)], ids=["line", "plane"])
def test_nothing_off_the_lattice_is_better(task):
    """Of the steps in two goals: what random and purposeful continuous episodes have, the lattice has."""
    env, rng = Reaching(task), np.random.default_rng(0)
    env.reset(20_000, 0)
    targets = env.goals[rng.integers(2, size=(8, 20_000))]
    returns = np.zeros((20_000, 2))
    place = np.zeros((20_000, len(task.goals[0])))
    for t in range(task.horizon):
        wanted = targets[t] + rng.uniform(-HALF, HALF, place.shape) - place
        place, reward, _ = env.step(
            np.where(rng.random((20_000, 1)) < 0.7, wanted, rng.uniform(-1, 1, place.shape))
        )
        returns += reward
    for weight in ((1.0, 1.0), (2.0, 1.0), (1.0, 2.0), (1.0, 0.0), (0.0, 1.0)):
        bound = solve(lattice(task), lsr(weight), check=False).value
        assert (returns @ weight).max() <= bound + 1e-9


def test_the_best_policy_of_the_lattice_attains_its_value_among_gusts():
    task, episodes, objective = Task(((-1,), (2,)), 8, calm=0.6), 400, lsr((1.0, 1.2))
    optimum = solve(lattice(task), objective, check=False)
    momdp, env, rng = optimum.policy.space.momdp, Reaching(task), np.random.default_rng(1)
    place, accrued = env.reset(episodes, 1), np.zeros((episodes, 2))
    states = {tuple(seen): state for state, seen in enumerate(momdp.observations.tolist())}
    for t in range(task.horizon):
        chances = [
            optimum.policy.at(states[tuple(np.rint(x).astype(int))], r.tolist(), t)
            for x, r in zip(place, accrued, strict=True)
        ]
        wanted = place + [[rng.choice(3, p=p) - 1.0] for p in chances]
        place, reward, _ = env.step(np.clip(wanted, -1, 2) - place)  # as the lattice is bounded
        accrued += reward
    worth = accrued @ (1.0, 1.2)
    assert worth.mean() == pytest.approx(optimum.value, abs=4 * worth.std() / np.sqrt(episodes))


def test_episodes_of_a_calm_day_reach_both_goals():
    found = collect(TASKS["reach-plane-three"], 50, seed=3)
    assert found.actions.shape == (50 * 28, 2)
    assert np.all(np.abs(found.actions) <= 1)
    assert np.all(found.returns.max(axis=0) > 5)


# Data of finite problems.


def test_a_planner_is_as_good_as_the_solver_says():
    momdp = random_momdp(np.random.default_rng(1), 4, 3, 4)
    space = enumerate_space(momdp)
    weights = np.array([[1.0, 0.0], [0.3, 0.7]])
    plans = planners(momdp, weights)
    for planner, weight in enumerate(weights):
        choice = [plans[t, planner, layer.state[layer.live]] for t, layer in enumerate(space.layers[:-1])]
        mean = deterministic(space, choice).outcomes().mean
        assert mean @ weight == pytest.approx(solve(space, lsr(tuple(weight)), check=False).value)


@pytest.mark.parametrize("behaviour", ["random", "mixed"])
def test_recorded_episodes_follow_the_table(behaviour):
    table = gathering(30)
    momdp = table.momdp()
    index = {tuple(o): s for s, o in enumerate(momdp.observations.tolist()) if not momdp.terminal[s]}
    found = collect_table(momdp, 60, 5, behaviour)
    assert found.terminated.any()
    for episode in found:
        last = len(episode.actions) - 1
        for t, action in enumerate(episode.actions):
            outcomes = list(table.step(tuple(episode.observations[t].tolist()), int(action)))
            told = (tuple(episode.observations[t + 1].tolist()), tuple(episode.rewards[t].tolist()))
            assert (*told, bool(episode.terminated and t == last)) in [
                (there, tuple(map(float, reward)), bool(ends)) for _, there, reward, ends in outcomes
            ]
        assert tuple(episode.observations[0].tolist()) in index


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", TABLES)
def test_tables_are_what_the_real_environments_do(name):
    assert worst_deviation(TABLES[name][0], draws=500, states=500) < 5


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_table_that_is_wrong_is_found_out():
    real, other = fishwood(5), fishwood(5, (0.3, 0.9))
    assert worst_deviation(real, 200) < 5
    assert worst_deviation(replace(real, step=other.step), 200) > 5
    assert (
        worst_deviation(replace(real, step=lambda state, _: [(1.0, state, (0.0, 0.0), False)]), 1) == math.inf
    )


@pytest.mark.slow
def test_a_mazes_reference_is_at_least_every_schedule_with_one_switch_and_every_recorded_episode():
    maze = PointMaze("##### / #A.B# / #.S.# / #####", horizon=40)
    objective = fair_objectives(maze.utility_threshold)["ESR"]
    world = maze_world(maze, {"ESR": objective}, "mixed")
    dataset = world.collect(50, 0)
    times = np.arange(41)[:, None]
    driven = np.concatenate(
        [schedule_returns(maze, np.tile(order, (41, 1)), times) for order in ((0, 1), (1, 0))]
    )
    every = np.concatenate([driven, dataset.returns])
    worth = [float(in_float64(objective)(returns[None])) for returns in every]
    assert world.reference(objective, dataset) >= max(worth) - 1e-6
    assert world.reference(objective, dataset) <= max(worth) + 0.5
