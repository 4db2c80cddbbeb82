"""The search for schedules against brute force, on a maze that is small enough to try them all."""

import equinox as eqx
import numpy as np
import pytest
from scipy.optimize import minimize

from aetdice import bsr, esr, lsr, ser
from aetdice.envs import PointMaze
from aetdice.envs.point_maze.heuristics import schedule_returns
from aetdice.envs.point_maze.schedules import drive_all, orders, tours
from aetdice.exact.mixtures import best_mixture
from aetdice.objectives import in_float64
from aetdice.studies.point_maze import described, search

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
