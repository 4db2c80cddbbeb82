"""Differences with constants that are never written out are the matrix they stand for."""

import jax.numpy as jnp
import numpy as np
import pytest

from aetdice.data import passes
from aetdice.exact.differences import TimedDifferences

STEPS, BLOCK, FEATURES, DISCOUNT = 11, 4, 3, 0.9


@pytest.fixture(params=[5, 1], ids=["a constant per step", "one constant"])
def pair(request, monkeypatch):
    """The operator, and the same as a dense matrix."""
    monkeypatch.setattr(passes, "BLOCK", BLOCK)
    rng = np.random.default_rng(0)
    constants = request.param
    here, there = rng.normal(size=(2, STEPS, FEATURES)).astype(np.float32)
    time = rng.integers(0, 5, STEPS)
    now, then = (np.minimum(t, constants - 1) for t in (time, time + 1))
    follows = DISCOUNT * rng.integers(0, 2, STEPS)
    operator = TimedDifferences(jnp.asarray(here), jnp.asarray(there), now, then, follows, constants)
    rows = [np.asarray(f, float) for f in (here, there)]
    ones = np.eye(constants)
    dense = follows[:, None] * np.hstack([rows[1], ones[then]]) - np.hstack([rows[0], ones[now]])
    return operator, dense, rng


def test_products(pair):
    operator, dense, rng = pair
    parameters, columns = rng.normal(size=dense.shape[1]), rng.normal(size=(STEPS, 2))
    np.testing.assert_allclose(operator.times(parameters), dense @ parameters, atol=1e-12)
    np.testing.assert_allclose(operator.transposed_times(columns), dense.T @ columns, atol=1e-12)


def test_solving(pair):
    operator, dense, rng = pair
    weight, right = rng.uniform(size=STEPS), rng.normal(size=(dense.shape[1], 2))
    system = dense.T @ (weight[:, None] * dense) + 0.1 * np.eye(dense.shape[1])
    np.testing.assert_allclose(
        operator.solve(operator.gram(weight), 0.1, right), np.linalg.solve(system, right), rtol=1e-8
    )
