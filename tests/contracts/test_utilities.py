"""Utilities are total, batched by vmap, traced in their parameters; `Fair` is what its formula says."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from aetdice.objectives import (
    UTILITIES,
    AlphaFairUtility,
    CobbDouglas,
    CustomUtility,
    Exponential,
    Fair,
    Objective,
    in_float64,
)

each_utility = pytest.mark.parametrize("make", UTILITIES.values(), ids=UTILITIES.keys())
each_continuation = pytest.mark.parametrize("continuation", ["quadratic", "linear"])

ENDS = [0, 1, -1, 1e-6, 1e3, -1e6, 1e6]  # 1 is the logs' threshold, 1e3 the exponential's cap
EXTREMES = jnp.asarray(list(itertools.product(ENDS, repeat=2)), jnp.float32)
RETURNS = jnp.asarray([[4.0, 9.0], [0.5, 2.0], [-3.0, 0.25]])


@eqx.filter_jit
def evaluate(utility, returns):
    return jax.vmap(utility)(returns)


@eqx.filter_jit
def jacobians(utility, returns):
    return jax.vmap(jax.jacrev(lambda r: utility(r)))(returns)


def variants(utility):
    """The same utility at three settings of its parameters."""
    return [jax.tree.map(lambda leaf, by=by: np.asarray(leaf * by), utility) for by in (1.0, 1.1, 1.2)]


@each_utility
def test_utility_is_finite_with_finite_slopes_everywhere(make):
    assert np.all(np.isfinite(evaluate(make(), EXTREMES)))
    assert np.all(np.isfinite(jacobians(make(), EXTREMES)))


@each_utility
def test_utility_gives_a_vector_and_vmap_equals_a_loop(make):
    utility = make()
    loop = [utility(returns) for returns in RETURNS]
    assert all(values.ndim == 1 and values.dtype == jnp.float32 for values in loop)
    np.testing.assert_allclose(evaluate(utility, RETURNS), loop, rtol=1e-6)


@each_utility
def test_utility_has_a_name_that_changes_with_its_parameters(make):
    names = {variant.name for variant in variants(make())}
    assert "" not in names
    assert len(names) == (3 if jax.tree.leaves(make()) else 1)


@each_utility
def test_utility_parameters_may_be_stacked_and_mapped_over(make):
    settings = variants(make())
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *settings)
    mapped = jax.jit(jax.vmap(lambda utility: utility(RETURNS[0]), axis_size=3))(stacked)
    loop = [evaluate(utility, RETURNS)[0] for utility in settings]
    np.testing.assert_allclose(mapped, loop, rtol=1e-6)


@each_utility
def test_new_parameters_do_not_retrace(make):
    traces = []

    @eqx.filter_jit
    def traced(utility):
        traces.append(utility)
        return utility(RETURNS[0])

    for variant in variants(make()):
        traced(variant)
    assert len(traces) == 1


@pytest.mark.parametrize(
    ("name", "expected"),
    {
        "identity": [4, 9],
        "log": [np.log(4), np.log(9)],
        "alpha-fair": [2, 4],
        "exponential": [np.exp(0.08), np.exp(0.18)],
        "cobb-douglas": [2 / np.sqrt(9.001)],
        "threshold": [3, 8],
        "scaled": [8, 18],
        "select": [4],
        "stack": [4, 9, np.log(4), np.log(9)],
        "chain": [np.log(3), np.log(8)],
    }.items(),
)
def test_utility_at_four_and_nine(name, expected):
    np.testing.assert_allclose(UTILITIES[name]()(RETURNS[0]), expected, rtol=1e-6)


def test_a_function_that_gives_a_number_is_one_utility():
    objective = Objective(lambda r: r[0] * r[1], lambda k: k[0])
    assert isinstance(objective.utility, CustomUtility)
    np.testing.assert_allclose(objective.utility(RETURNS[0]), [36.0])


def test_exponential_goes_on_along_its_tangent_above_the_cap():
    at_the_cap, beyond = in_float64(Exponential(scale=2.0, cap=3.0))(np.array([6.0, 10.0]))
    np.testing.assert_allclose([at_the_cap, beyond], [np.exp(3), np.exp(3) * 3], rtol=1e-12)


def test_cobb_douglas_prefers_more_gain_and_less_cost_even_at_negative_returns():
    slopes = in_float64(jacobians)(CobbDouglas(), np.asarray(EXTREMES[np.abs(EXTREMES).max(axis=1) <= 1]))
    assert np.all(slopes[:, 0, 0] > 0)
    assert np.all(slopes[:, 0, 1] < 0)


def test_cobb_douglas_has_one_slope_at_zero():
    """Where a return is exactly 0, as at the start, from both sides and at the point itself."""
    at = np.array([[2.0, -1e-9], [2.0, 0.0], [2.0, 1e-9], [-1e-9, 2.0], [0.0, 2.0], [1e-9, 2.0]])
    slopes = in_float64(jacobians)(CobbDouglas(rho=0.3), at)[:, 0]
    np.testing.assert_allclose(slopes[:3], slopes[1:2].repeat(3, axis=0), rtol=1e-4)
    np.testing.assert_allclose(slopes[3:], slopes[4:5].repeat(3, axis=0), rtol=1e-4)


# The α-fair function. Module-level wrappers compile once for all parameter values.

fair_value = in_float64(lambda fair, x: fair(x))
fair_slope = in_float64(lambda fair, x: fair.slope(x))
fair_inverse = in_float64(lambda fair, mu: fair.inverse_slope(mu))
fair_gradient = in_float64(lambda fair, x: jax.vmap(jax.grad(lambda y: fair(y)))(x))
fair_curvature = in_float64(lambda fair, x: jax.vmap(jax.grad(jax.grad(lambda y: fair(y))))(x))

numbers = arrays(np.float64, 8, elements=st.floats(-50, 1000))
fairs = st.builds(
    Fair, st.floats(0, 3), st.floats(0.05, 5), st.sampled_from(["quadratic", "linear"])
)  # a, threshold, continuation


@given(a=st.sampled_from([0.0, 0.25, 0.5, 1.5, 2.0]), threshold=st.floats(0.05, 1), x=numbers)
def test_fair_is_the_power_formula_above_its_threshold(a, threshold, x):
    x = threshold + np.abs(x)
    expected = (x ** (1 - a) - 1) / (1 - a)
    np.testing.assert_allclose(fair_value(Fair(a, threshold), x), expected, rtol=1e-9, atol=1e-12)


def test_fair_one_is_the_piecewise_log_of_the_paper():
    x = np.array([-1e3, -1.0, 0.0, 0.5, 0.999, 1.0, 1.001, 2.0, 1e6])
    expected = np.where(x < 1, -((x - 2) ** 2) / 2 + 1 / 2, np.log(np.maximum(x, 1)))
    np.testing.assert_allclose(fair_value(Fair(), x), expected, rtol=1e-14, atol=1e-15)


@given(a=st.floats(0, 3), threshold=st.floats(0.05, 5), x=numbers)
def test_linear_continuation_is_the_tangent_at_the_threshold(a, threshold, x):
    fair = Fair(a, threshold, "linear")
    below = threshold - np.abs(x)
    at_the_threshold = fair_value(fair, np.full(8, threshold))
    expected = at_the_threshold + threshold**-a * (below - threshold)
    np.testing.assert_allclose(fair_value(fair, below), expected, rtol=1e-12, atol=1e-12)


@each_continuation
@pytest.mark.parametrize("a", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("threshold", [0.01, 1.0])
def test_fair_has_no_jump_of_value_or_slope_at_its_threshold(a, threshold, continuation):
    fair = Fair(a, threshold, continuation)
    around = threshold * np.array([1 - 1e-9, 1, 1 + 1e-9])
    assert np.ptp(fair_value(fair, around)) <= 3e-9 * threshold ** (1 - a)
    np.testing.assert_allclose(fair_gradient(fair, around), threshold**-a, rtol=1e-8)


@pytest.mark.parametrize("a", [0.0, 0.5, 1.0, 2.0])
def test_quadratic_continuation_has_no_jump_of_curvature_at_its_threshold(a):
    around = 0.5 * np.array([1 - 1e-9, 1, 1 + 1e-9])
    np.testing.assert_allclose(
        fair_curvature(Fair(a, 0.5), around), -a * 0.5 ** (-a - 1), rtol=1e-7, atol=1e-9
    )


@pytest.mark.parametrize("step", [1e-6, -1e-6, 1e-9])
def test_fair_passes_continuously_through_the_logarithm(step):
    x = np.geomspace(1.5, 1000, 9)
    change = fair_value(Fair(1 + step), x) - fair_value(Fair(), x)
    np.testing.assert_allclose(change, -step * np.log(x) ** 2 / 2, rtol=1e-4, atol=1e-14)


@pytest.mark.parametrize("a", [0.9, 0.999, 1 - 1e-5, 1.0, 1 + 1e-6, 1 + 1e-4, 1.01])
def test_fair_in_single_precision_loses_nothing_near_the_logarithm(a):
    x = np.array([1.5, 10.0, 1000.0])
    np.testing.assert_allclose(Fair(a)(jnp.asarray(x, jnp.float32)), fair_value(Fair(a), x), rtol=2e-6)


@given(fairs, numbers)
def test_fair_increases_and_is_concave(fair, x):
    x = np.sort(x)
    value, slope = fair_value(fair, x), fair_slope(fair, x)
    middle = fair_value(fair, (x + x[::-1]) / 2)
    assert np.all(slope > 0)
    assert np.all(np.diff(slope) <= 1e-9 * slope[:-1])
    assert np.all(np.diff(value) >= 0)
    assert np.all(middle >= (value + value[::-1]) / 2 - 1e-9 * (1 + np.abs(value)))


@given(fairs, numbers)
def test_fair_slope_is_its_derivative(fair, x):
    np.testing.assert_allclose(fair_slope(fair, x), fair_gradient(fair, x), rtol=1e-9)


@given(a=st.floats(0.25, 3), threshold=st.floats(0.05, 5), x=numbers)
def test_inverse_slope_undoes_the_slope(a, threshold, x):
    fair = Fair(a, threshold)
    np.testing.assert_allclose(fair_inverse(fair, fair_slope(fair, x)), x, rtol=1e-9, atol=1e-9)


def test_steepest_slope_is_finite_for_the_linear_continuation_only():
    np.testing.assert_allclose(Fair(2.0, 0.5, "linear").steepest, 4.0)
    assert np.isposinf(Fair(2.0, 0.5).steepest)


@pytest.mark.parametrize(("threshold", "continuation"), [(0.01, "quadratic"), (1.0, "linear")])
def test_name_of_a_log_says_threshold_and_continuation(threshold, continuation):
    name = AlphaFairUtility(Fair(1.0, threshold, continuation)).name
    assert name == f"log, {continuation} below {threshold:g}"


@each_continuation
@pytest.mark.parametrize("a", [0.0, 0.5, 1.0, 2.0])
def test_fair_with_a_small_threshold_is_total(a, continuation):
    utility = AlphaFairUtility(Fair(a, 0.01, continuation))
    assert np.all(np.isfinite(evaluate(utility, EXTREMES)))
    assert np.all(np.isfinite(jacobians(utility, EXTREMES)))
