"""Divergences are normalised and convex; ratio and conjugate are those of φ on w ≥ 0."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from aetdice.objectives import DIVERGENCES, KL, ChiSquare, SoftChiSquare, in_float64

each_divergence = pytest.mark.parametrize(
    "divergence", [make() for make in DIVERGENCES.values()], ids=DIVERGENCES.keys()
)

phi = in_float64(lambda d, w: d(w))
phi_slope = in_float64(lambda d, w: jax.vmap(jax.grad(lambda x: d(x)))(w))
ratio = in_float64(lambda d, y: d.ratio(y))
conjugate = in_float64(lambda d, y: d.conjugate(y))
conjugate_slope = in_float64(lambda d, y: jax.vmap(jax.grad(lambda x: d.conjugate(x)))(y))

ratios = arrays(np.float64, 8, elements=st.floats(0, 1e3) | st.floats(0, 1e10))
slopes = arrays(np.float64, 8, elements=st.floats(-30, 30))  # KL goes on linearly above 20


@each_divergence
def test_divergence_and_its_slope_vanish_at_one(divergence):
    one = np.ones(1)
    np.testing.assert_allclose(phi(divergence, one), 0, atol=1e-15)
    np.testing.assert_allclose(phi_slope(divergence, one), 0, atol=1e-15)


@each_divergence
@given(w=ratios)
def test_divergence_is_positive_and_convex(divergence, w):
    ends = phi(divergence, w)
    middle = phi(divergence, (w + w[::-1]) / 2)
    assert np.all(ends >= -1e-12)
    assert np.all(middle <= (ends + ends[::-1]) / 2 * (1 + 1e-12) + 1e-12)


@each_divergence
@given(w=ratios, y=slopes)
def test_conjugate_bounds_every_ratio_and_is_attained_at_its_own(divergence, w, y):
    bound = conjugate(divergence, y)
    assert np.all(bound >= w * y - phi(divergence, w) - 1e-10 * (1 + np.abs(w * y)))
    best = ratio(divergence, y)
    np.testing.assert_allclose(bound, best * y - phi(divergence, best), rtol=1e-9, atol=1e-9)


@each_divergence
@given(y=slopes)
def test_ratio_is_the_slope_of_the_conjugate(divergence, y):
    np.testing.assert_allclose(ratio(divergence, y), conjugate_slope(divergence, y), rtol=1e-10, atol=1e-12)


@each_divergence
@given(w=arrays(np.float64, 8, elements=st.floats(1e-6, 1e3) | st.floats(1e-6, 1e10)))
def test_ratio_undoes_the_slope_of_the_divergence(divergence, w):
    np.testing.assert_allclose(ratio(divergence, phi_slope(divergence, w)), w, rtol=1e-9, atol=1e-9)


@each_divergence
@given(y=slopes)
@settings(max_examples=20)
def test_ratio_never_falls_and_is_never_negative(divergence, y):
    w = ratio(divergence, np.sort(y))
    assert np.all(np.diff(w) >= 0)
    assert np.all(w >= 0)


@each_divergence
def test_ratio_and_conjugate_are_finite_in_single_precision(divergence):
    y = jnp.asarray([-1e6, -1.0, 0.0, 20.0, 100.0, 1e6], jnp.float32)
    for function in (divergence.ratio, divergence.conjugate):
        assert np.all(np.isfinite(function(y)))
        assert np.all(np.isfinite(jax.vmap(jax.grad(function))(y)))
    assert np.all(np.isfinite(divergence(divergence.ratio(y))))


@pytest.mark.parametrize("shape", [(), (6,), (2, 3)])
@each_divergence
def test_divergence_works_entry_by_entry_on_any_shape(divergence, shape):
    y = jnp.linspace(-2, 2, 6)[: int(np.prod(shape))].reshape(shape)
    for function in (divergence, divergence.ratio, divergence.conjugate):
        found = function(jnp.abs(y))
        assert found.shape == shape
        np.testing.assert_allclose(found.ravel(), [function(x) for x in jnp.abs(y).ravel()], rtol=1e-6)


BELOW_AND_ABOVE = np.array([-3.0, -1.0, -0.5, 0.0, 0.5, 4.0])


@pytest.mark.parametrize(
    ("divergence", "expected"),
    [
        (ChiSquare(), lambda y: np.maximum(0, 1 + y)),
        (KL(), np.exp),
        (SoftChiSquare(), lambda y: np.where(y < 0, np.exp(y), 1 + y)),
    ],
)
def test_ratio_is_the_closed_formula(divergence, expected):
    np.testing.assert_allclose(ratio(divergence, BELOW_AND_ABOVE), expected(BELOW_AND_ABOVE), rtol=1e-14)


@pytest.mark.parametrize(
    ("divergence", "expected"),
    [
        (ChiSquare(), lambda y: np.where(y > -1, y + y**2 / 2, -1 / 2)),
        (KL(), lambda y: np.exp(y) - 1),
        (SoftChiSquare(), lambda y: np.where(y < 0, np.exp(y) - 1, y + y**2 / 2)),
    ],
)
def test_conjugate_is_the_closed_formula(divergence, expected):
    np.testing.assert_allclose(
        conjugate(divergence, BELOW_AND_ABOVE), expected(BELOW_AND_ABOVE), rtol=1e-13, atol=1e-15
    )


@pytest.mark.parametrize(
    ("divergence", "expected"),
    [
        (ChiSquare(), [0.5, 0.125, 0.5]),
        (KL(), [1, 0.5 - np.log(2) / 2, 2 * np.log(2) - 1]),
        (SoftChiSquare(), [1, 0.5 - np.log(2) / 2, 0.5]),
    ],
)
def test_divergence_at_zero_a_half_and_two(divergence, expected):
    np.testing.assert_allclose(phi(divergence, np.array([0.0, 0.5, 2.0])), expected, rtol=1e-14)
