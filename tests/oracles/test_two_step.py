"""The two-step problem, whose optima can be worked out by hand."""

import numpy as np
import pytest

from aetdice import Objective, TabularMOMDP, bsr, esr, lsr, ser, solve
from aetdice.envs import TwoStep
from aetdice.exact import Optimum

A1, A2, A3 = np.eye(3)


def optimum(objective: Objective, first_reward: tuple[float, float] = (0.0, 0.0)) -> Optimum:
    return solve(TabularMOMDP.from_environment(TwoStep(first_reward)), objective)


@pytest.mark.parametrize(
    ("objective", "first_reward", "value", "choice"),
    [
        pytest.param(ser(), (0.0, 0.0), np.log(25), (A1 + A3) / 2, id="ser-mixes-a1-and-a3"),
        pytest.param(esr(), (0.0, 0.0), np.log(16), A2, id="esr-takes-a2"),
        pytest.param(esr(), (2.0, 0.0), np.log(27), A3, id="esr-takes-a3-after-2-0"),
        pytest.param(bsr(1.0), (0.0, 0.0), np.log(25), (A1 + A3) / 2, id="bsr-1-is-ser"),
        pytest.param(bsr(0.0), (0.0, 0.0), np.log(16), A2, id="bsr-0-is-esr"),
        pytest.param(lsr((0.6, 0.4)), (0.0, 0.0), 5.8, A1, id="linear-favouring-the-first"),
        pytest.param(lsr((0.4, 0.6)), (0.0, 0.0), 5.8, A3, id="linear-favouring-the-second"),
        pytest.param(lsr((0.6, 0.4)), (2.0, 0.0), 7.0, A1, id="linear-forgets-the-first-reward"),
    ],
)
def test_optimum_worked_out_by_hand(objective, first_reward, value, choice):
    found = optimum(objective, first_reward)
    assert found.value == pytest.approx(value, abs=1e-6)
    np.testing.assert_allclose(found.policy.at(1, first_reward, 1), choice, atol=1e-6)
    assert 0 <= found.gap <= 1e-9


def test_ser_after_2_0_shifts_the_mixture_to_equal_means():
    """Means (3 + 8p, 9 - 8p) with p on a1: their product is largest where they are equal."""
    found = optimum(ser(), (2.0, 0.0))
    np.testing.assert_allclose(found.policy.at(1, (2.0, 0.0), 1), [3 / 8, 0, 5 / 8], atol=1e-6)
    assert found.value == pytest.approx(np.log(36), abs=1e-6)


def test_each_optimum_is_best_under_its_own_objective():
    under_ser, under_esr = optimum(ser()).outcomes, optimum(esr()).outcomes
    assert under_ser.score(ser()) - under_esr.score(ser()) == pytest.approx(np.log(25 / 16), abs=1e-6)
    assert under_esr.score(esr()) - under_ser.score(esr()) == pytest.approx(np.log(16 / 9), abs=1e-6)
