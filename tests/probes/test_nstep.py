"""n-step residuals: ratios of whole segments, in which the errors of ν cancel."""

import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from support.ragged import HORIZON, ragged, some_nu

from aetdice import InputError, TrainingConfig, bsr
from aetdice.algorithms.dual import DualSetting, step_residuals
from aetdice.algorithms.nstep import conserving_ratios, mean_residuals, segments
from aetdice.config import DualConfig
from aetdice.dice import FiniteHorizon
from aetdice.learning.setup import algorithm_for
from aetdice.objectives import DIVERGENCES

FLOW, MU, OBJECTIVE = FiniteHorizon(HORIZON), jnp.array([0.3, 0.7]), bsr(0.5)
BETAS = (0.01, 0.1, 1.0)


def setting(divergence="chi2", *, terminal=False):
    return DualSetting(FLOW, DIVERGENCES[divergence](), DualConfig(terminal_reward=terminal))


def episodes_of(data):
    return np.split(np.arange(data.steps.count), np.asarray(data.initial)[1:])


@eqx.filter_jit
def ratios_of(data, n_step, how):
    """For every β."""
    ahead = segments(data, n_step)
    residuals = mean_residuals(some_nu(), OBJECTIVE, data, ahead, MU, how)

    def ratios(beta):
        return conserving_ratios(residuals, ahead.length, beta, data, HORIZON, how)

    return jax.vmap(ratios)(jnp.asarray(BETAS))


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
@pytest.mark.parametrize("terminal", [False, True], ids=["along the way", "at the end"])
def test_residual_of_a_segment_is_the_mean_of_its_steps(terminal, cut):
    data, nu, how = ragged(cut=cut), some_nu(), setting(terminal=terminal)
    residuals = eqx.filter_jit(mean_residuals)
    single = np.asarray(eqx.filter_jit(step_residuals)(nu, OBJECTIVE, data.steps, MU, how))
    for n_step in (1, 2, 4, 101):
        found = residuals(nu, OBJECTIVE, data, segments(data, n_step), MU, how)
        ends = [(row, min(row + n_step, rows[-1] + 1)) for rows in episodes_of(data) for row in rows]
        expected = [single[first:last].mean() for first, last in ends]
        np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_first_steps_have_the_ratios_of_the_exact_optimum_whatever_nu_says(divergence):
    """Where episodes never meet, each keeps one weight: w = (φ')⁻¹((μ·F(R) - λ) / βL), with mean 1."""
    data, phi = ragged(cut=False), DIVERGENCES[divergence]()
    rows = episodes_of(data)
    length = np.array([len(each) for each in rows])
    value = np.array([float(MU @ OBJECTIVE.utility(data.steps.next_accrued[each[-1]])) for each in rows])

    def weights(level, beta):
        return np.asarray(phi.ratio(jnp.asarray((value - level) / (beta * length), jnp.float32)), float)

    every = np.asarray(ratios_of(data, HORIZON + 1, setting(divergence)))[:, np.asarray(data.initial)]
    for beta, found in zip(BETAS, every, strict=True):
        low, high = value.min() - 99, value.max() + 99
        level = scipy.optimize.brentq(lambda x, beta=beta: weights(x, beta).mean() - 1, low, high)
        np.testing.assert_allclose(found, weights(level, beta), atol=1e-3)


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
@pytest.mark.parametrize("n_step", [2, HORIZON + 1])
@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_ratios_of_segments_conserve_mass_at_every_time(divergence, n_step, cut):
    data = ragged(cut=cut)
    steps = data.steps
    for w in ratios_of(data, n_step, setting(divergence)):
        assert np.all(np.asarray(w) >= 0)
        assert FLOW.mass_violation(w * steps.weight, steps.time, steps.terminates) < 1e-3


@pytest.mark.parametrize("name", ["optidice", "fairdice"])
def test_discounted_flows_have_no_segments(name):
    config = TrainingConfig().adapted({"dual.n_step": 4})
    assert algorithm_for("aetdice", HORIZON, config).setting.config.n_step == 4
    message = f"{name} does not read dual.n_step; it belongs to aetdice"
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        algorithm_for(name, HORIZON, config)
