"""Foresight: ratios from the residuals of whole segments, in which the errors of ν cancel."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from support.training import TINY
from support.ragged import HORIZON, ragged, some_nu

from aetdice import bsr
from aetdice.algorithms.dual import DiceSetting, step_residuals
from aetdice.algorithms.nstep import conserving_ratios, mean_residuals, segments
from aetdice.algorithms.dice import aetdice, fairdice, optidice
from aetdice.dice import FiniteHorizon
from aetdice.objectives import DIVERGENCES

FLOW, MU, OBJECTIVE = FiniteHorizon(HORIZON), jnp.array([0.3, 0.7]), bsr(0.5)
BETAS = [0.01, 0.1, 1.0]


def setting(divergence="chi2", *, terminal=False):
    return DiceSetting(FLOW, DIVERGENCES[divergence](), terminal_reward=terminal)


def episodes_of(data):
    return np.split(np.arange(data.steps.count), np.asarray(data.initial)[1:])


def foreseen(data, beta, ahead, how):
    reach = segments(data, ahead)
    residuals = mean_residuals(some_nu(), OBJECTIVE, data, reach, MU, how)
    return conserving_ratios(residuals, reach.length, beta, data, HORIZON, how)


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
@pytest.mark.parametrize("terminal", [False, True], ids=["along the way", "at the end"])
@pytest.mark.parametrize("ahead", [0, 1, 3, 100])
def test_residual_of_a_stretch_is_the_mean_of_its_steps(ahead, terminal, cut):
    data, how = ragged(cut=cut), setting(terminal=terminal)
    single = np.asarray(step_residuals(some_nu(), OBJECTIVE, data.steps, MU, how))
    found = mean_residuals(some_nu(), OBJECTIVE, data, segments(data, ahead), MU, how)
    expected = [
        single[row : min(row + ahead, rows[-1]) + 1].mean() for rows in episodes_of(data) for row in rows
    ]
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_first_steps_have_the_ratios_of_the_exact_optimum_whatever_nu_says(divergence, beta):
    """Where episodes never meet, each keeps one weight: w = (φ')⁻¹((μ·F(R) - λ) / βL), with mean 1."""
    data, phi = ragged(cut=False), DIVERGENCES[divergence]()
    rows = episodes_of(data)
    length = np.array([len(each) for each in rows])
    value = np.array([float(MU @ OBJECTIVE.utility(data.steps.next_accrued[each[-1]])) for each in rows])

    def weights(level):
        return np.asarray(phi.ratio(jnp.asarray((value - level) / (beta * length), jnp.float32)), float)

    level = scipy.optimize.brentq(lambda level: weights(level).mean() - 1, value.min() - 99, value.max() + 99)
    found = np.asarray(foreseen(data, beta, HORIZON, setting(divergence)))[np.asarray(data.initial)]
    np.testing.assert_allclose(found, weights(level), atol=1e-3)


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
@pytest.mark.parametrize("ahead", [1, HORIZON])
@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_foreseen_ratios_conserve_mass_at_every_time(divergence, beta, ahead, cut):
    data = ragged(cut=cut)
    steps, w = data.steps, foreseen(data, beta, ahead, setting(divergence))
    assert np.all(np.asarray(w) >= 0)
    assert FLOW.mass_violation(w * steps.weight, steps.time, steps.terminated) < 1e-3


@pytest.mark.parametrize("make", [optidice, fairdice])
def test_discounted_flows_have_no_foresight(make):
    config = dataclasses.replace(TINY, foresight=3)
    assert aetdice(HORIZON, config).setting.foresight == 3
    assert make(HORIZON, config).setting.foresight == 0
