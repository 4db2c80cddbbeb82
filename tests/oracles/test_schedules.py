"""The search for schedules against brute force, on a maze that is small enough to try them all."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from aetdice import bsr, esr, lsr, ser
from aetdice.envs import PointMaze
from aetdice.envs.point_maze.heuristics import (
    CRUISE,
    Itinerary,
    schedule_returns,
    steer,
    waypoint,
    waypoints,
)
from aetdice.envs.point_maze.schedules import drive_all, orders, tours
from aetdice.exact.mixtures import best_mixture
from aetdice.objectives import in_float64
from aetdice.studies.point_maze import described, search
from aetdice.studies.slippery import best_schedules

MAZE = PointMaze("#####/#B.S#/###A#/#####", distance=0.4, scales=(2.0, 1.0), horizon=60)
OBJECTIVES = {"ESR": esr(threshold=0.01), "SER": ser(), "LSR": lsr()}


def test_orders_are_all_sequences_that_move_on():
    assert orders(2, 3).tolist() == [[0, 1, 0], [1, 0, 1]]
    assert len(orders(3, 3)) == 3 * 2 * 2
    assert tours(3).shape == (6, 3)


def test_the_grid_has_every_schedule():
    schedules = drive_all(MAZE, tours(2), 20)
    assert schedules.switch_times[:, 0].tolist() == [0, 20, 40, 60] * 2
    alone = schedule_returns(MAZE, schedules.targets, schedules.switch_times)
    np.testing.assert_allclose(schedules.returns, alone, rtol=1e-9)


@pytest.fixture(scope="module")
def everything():
    """All schedules of two legs, to the step."""
    return drive_all(MAZE, tours(2), 1)


@pytest.fixture(scope="module")
def found():
    return search(MAZE, OBJECTIVES, tours(2), 10)


def test_refining_finds_the_best_schedule_of_all(everything, found):
    schedules, best = found
    assert len(schedules.returns) < len(everything.returns)
    for name in ("ESR", "LSR"):
        alone = [float(in_float64(OBJECTIVES[name])(row[None])) for row in everything.returns]
        assert best[name].value == pytest.approx(max(alone), abs=1e-9)
        assert best[name].probabilities.tolist() == [1.0]


def test_a_mixture_of_a_few_is_the_best_mixture_of_all(everything, found):
    """Against a general optimiser over all probabilities at once."""
    returns = everything.returns

    def loss(logits):
        p = np.exp(logits - logits.max())
        return -np.sum(np.log(p / p.sum() @ returns))

    slow = minimize(loss, np.zeros(len(returns)), method="L-BFGS-B", options={"maxiter": 2000})
    assert found[1]["SER"].value == pytest.approx(-slow.fun, abs=2e-3)
    assert found[1]["SER"].value >= -slow.fun - 1e-6


def test_no_schedule_improves_a_mixture(everything):
    """The certificate of concave maximisation: no row gains along the slope."""
    objective = bsr(0.5, threshold=0.01)
    mixture = best_mixture(objective, everything.returns)
    utilities = in_float64(eqx.filter_vmap(objective.utility))(everything.returns)
    x = mixture.probabilities @ utilities[mixture.rows]
    moved = in_float64(eqx.filter_vmap(objective.aggregation))(x + 1e-3 * (utilities - x))
    assert moved.max() <= mixture.value + 1e-7


def test_a_mixture_is_described_with_its_goals(found):
    schedules, best = found
    parts = described(schedules, best["SER"], MAZE.objectives)
    assert sum(part["probability"] for part in parts) == pytest.approx(1)
    assert {goal for part in parts for goal in part["goals"]} <= {"goalA", "goalB"}
    probabilities = [part["probability"] for part in parts]
    assert probabilities == sorted(probabilities, reverse=True)


# With slip.

SLIPPERY = PointMaze("#####/#B.S#/###A#/#####", distance=0.4, scales=(2.0, 1.0), horizon=60, slip=0.2)


def test_without_slip_sampled_schedules_are_worth_what_driven_ones_are(everything):
    """Refined down to single steps near the best, as the search without sampling is."""
    values = best_schedules(MAZE, OBJECTIVES, tours(2), steps=(10, 3, 1), episodes=1, final=1)
    for name, objective in OBJECTIVES.items():
        assert values[name] == pytest.approx(best_mixture(objective, everything.returns).value, abs=2e-3)


def test_with_slip_a_schedule_is_worth_its_expected_utility():
    """Against episodes played with the environment alone, from keys of their own."""
    table, start = jnp.asarray(waypoints(SLIPPERY), float), jnp.asarray([*SLIPPERY.start, 0.0, 0.0])
    itinerary = Itinerary(jnp.zeros(1, int), jnp.zeros(0, int), jnp.asarray(CRUISE), jnp.asarray(1.0))

    def play(key):
        def advance(state, key):
            action = steer(SLIPPERY, state, waypoint(table, state, jnp.asarray(0)), itinerary)
            after, reward, _ = SLIPPERY.step(key, state, action)
            return after, reward

        return jax.lax.scan(advance, start, jax.random.split(key, SLIPPERY.horizon))[1].sum(axis=0)

    returns = np.asarray(jax.vmap(play)(jax.random.split(jax.random.key(9), 1500)), float)
    values = best_schedules(SLIPPERY, OBJECTIVES, np.array([[0]]), steps=(60,), episodes=4, final=1500)
    for name, objective in OBJECTIVES.items():
        alone = float(in_float64(objective)(returns))
        assert values[name] == pytest.approx(alone, rel=0.02, abs=0.02), name


def test_slip_costs_and_equal_seeds_choose_equally():
    settings = {"steps": (20, 10), "episodes": 16, "final": 200}
    sure, once, again = (
        best_schedules(maze, OBJECTIVES, tours(2), **settings) for maze in (MAZE, SLIPPERY, SLIPPERY)
    )
    assert once == again
    assert once["ESR"] < sure["ESR"]
    assert once["LSR"] < sure["LSR"]
