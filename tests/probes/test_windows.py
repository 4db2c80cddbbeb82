"""Windows of consecutive steps: ν of a successor is the next step's, wherever there is one."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from support.ragged import HORIZON, KEY, ragged, some_nu
from support.training import TINY

from aetdice import bsr
from aetdice.algorithms.dice import aetdice
from aetdice.algorithms.dual import (
    DiceHyper,
    DualSetting,
    batch_weights,
    entering_and_residuals,
    prepare_dual,
    step_residuals,
)
from aetdice.config import DualConfig
from aetdice.dice import Discounted, FiniteHorizon
from aetdice.objectives import ChiSquare


@pytest.mark.parametrize("window", [1, 2, 4, 19])
def test_residuals_do_not_depend_on_the_window(window):
    nu = some_nu()
    data, mu = ragged(cut=False), jnp.array([0.3, 0.7])
    setting, objective = DualSetting(FiniteHorizon(HORIZON), ChiSquare(), DualConfig()), bsr(0.5)
    rows = (jnp.arange(data.steps.count)[:, None] + jnp.arange(window)[None]) % data.steps.count
    hyper = DiceHyper(objective, 0.1, 1e-3, 1e-3, first_beta=0.1, averaging=0.999)

    @eqx.filter_jit
    def together(nu):
        batch = prepare_dual(nu.encoder, hyper, data, rows, data.initial, jnp.zeros(()), setting)
        return entering_and_residuals(nu, batch, mu, setting)

    @eqx.filter_jit
    def singly(nu):
        steps, first = data.steps.take(rows.ravel()), data.steps.take(data.initial)
        starts = jax.vmap(nu)(first.observation, first.accrued, first.time)
        return starts, step_residuals(nu, objective, steps, mu, setting)

    for found, expected in zip(together(nu), singly(nu), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
def test_every_step_is_drawn_as_often_as_any_other(cut):
    data, learner = ragged(cut=cut), aetdice(HORIZON, TINY)
    keys = jax.random.split(KEY, 400)
    rows = np.asarray(jax.jit(jax.vmap(lambda key: learner.draw(key, data)[0]))(keys))
    assert rows.shape[1:] == ((16, 1) if cut else (1, 16))
    if not cut:  # which needs the successor of every step
        single = aetdice(HORIZON, TINY.adapted({"ablation.time": "augmented"}))
        assert single.draw(KEY, data)[0].shape == (16, 1)
    np.testing.assert_array_equal(np.diff(rows, axis=2) % data.steps.count, 1)
    counts = np.bincount(rows[:, :, 0].ravel(), minlength=data.steps.count)
    assert scipy.stats.chisquare(counts).pvalue > 1e-4


def test_episode_that_stops_without_an_end_breaks_the_order_of_rows():
    assert not ragged(cut=False).breaks
    assert ragged(cut=True).breaks


@pytest.mark.parametrize("flow", [FiniteHorizon(HORIZON), Discounted(0.9)], ids=["finite", "discounted"])
def test_batches_weigh_their_steps_as_the_whole_data_does_on_average(flow):
    """Or the regulariser would be stronger than β says, by as much as the data is larger than a batch."""
    steps, size = ragged(cut=False).steps, 2
    setting = DualSetting(flow, ChiSquare(), DualConfig())
    whole = flow.transition_weights(steps.weight, steps.count)
    rows = np.arange(steps.count - steps.count % size).reshape(-1, size)
    weights = jax.jit(lambda part: batch_weights(steps.take(part), steps.count, setting)[:, 0])
    batches = [weights(part) for part in rows]
    found = np.concatenate(batches) * size / steps.count
    np.testing.assert_allclose(found, whole[: rows.size], rtol=1e-6)
