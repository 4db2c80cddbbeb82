"""Aggregations are concave, and their multipliers and conjugates belong to them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from aetdice.objectives import (
    AGGREGATIONS,
    AlphaFair,
    ClosedAggregation,
    CustomAggregation,
    Fair,
    Linear,
    Objective,
    SmoothMinimum,
    conjugate,
    multiplier,
    second_order,
    slack_conjugate,
)
from aetdice.objectives import in_float64 as exact

WEIGHTS = (1.0, 2.0, 0.5)
CASES = {name: make() for name, make in AGGREGATIONS.items()} | {
    "weighted sum": Linear(WEIGHTS),
    "weighted log": AlphaFair(weights=WEIGHTS),
    "weighted log, linear below 0.5": AlphaFair(Fair(1.0, 0.5, "linear"), WEIGHTS),
    "shifted u_2": AlphaFair(Fair(2.0, 0.5), WEIGHTS, offset=1.0),
    "weighted smooth-min": SmoothMinimum(3.0, WEIGHTS),
    "custom": CustomAggregation(lambda k: -jnp.sum((k - 3) ** 2) + k[0]),
}
CLOSED = {name: case for name, case in CASES.items() if isinstance(case, ClosedAggregation)}

each_aggregation = pytest.mark.parametrize("aggregation", CASES.values(), ids=CASES.keys())
each_closed = pytest.mark.parametrize("aggregation", CLOSED.values(), ids=CLOSED.keys())

points = arrays(np.float64, (8, 3), elements=st.floats(-20, 50))
shares = arrays(np.float64, (8, 3), elements=st.floats(0.01, 0.99))

value = exact(lambda g, k: jax.vmap(g)(k))
slopes = exact(lambda g, k: jax.vmap(lambda x: multiplier(g, x))(k))
slack_conjugates = exact(lambda g, k: jax.vmap(lambda x: slack_conjugate(g, x))(k))
maximisers = exact(lambda g, mu: jax.vmap(g.maximiser)(mu))
conjugates = exact(lambda g, mu: jax.vmap(lambda m: conjugate(g, m))(mu))
hessians = exact(lambda g, k: jax.vmap(lambda x: second_order(g, x)[2])(k))


@eqx.filter_jit
def in_single_precision(aggregation, k):
    return jax.vmap(jax.value_and_grad(lambda x: aggregation(x)))(k)


def dot(mu, k):
    return np.sum(mu * k, axis=1)


def feasible(aggregation, share):
    """Multipliers between 0 and the steepest slope (or 10, where there is none)."""
    return share * np.minimum(np.asarray(aggregation.steepest(jnp.ones(3)), np.float64), 10)


@each_aggregation
@given(k=points)
@settings(max_examples=15)
def test_aggregation_is_concave(aggregation, k):
    ends = value(aggregation, k)
    middle = value(aggregation, (k + k[::-1]) / 2)
    assert np.all(middle >= (ends + ends[::-1]) / 2 - 1e-10 * (1 + np.abs(ends).max()))


@each_aggregation
@given(k=points)
@settings(max_examples=10)
def test_multiplier_is_the_slope_by_finite_differences(aggregation, k):
    step = 1e-5 * np.eye(3)
    by_differences = [
        (value(aggregation, k + shift) - value(aggregation, k - shift)) / 2e-5 for shift in step
    ]  # a linear continuation bends at its threshold: hence the absolute tolerance
    np.testing.assert_allclose(slopes(aggregation, k), np.stack(by_differences, 1), rtol=1e-5, atol=5e-5)


@each_aggregation
@given(k=points)
@settings(max_examples=15)
def test_slack_conjugate_bounds_every_point_and_is_attained_at_the_slack(aggregation, k):
    mu, bound = slopes(aggregation, k), slack_conjugates(aggregation, k)
    tolerance = 1e-10 * (1 + np.abs(value(aggregation, k)).max() + np.abs(mu).max() * np.abs(k).max())
    for shift in range(1, 8):
        x = np.roll(k, shift, axis=0)
        assert np.all(bound >= value(aggregation, x) - dot(mu, x) - tolerance)
    np.testing.assert_allclose(bound, value(aggregation, k) - dot(mu, k), atol=tolerance)


@each_aggregation
def test_second_order_is_the_slope_of_the_multiplier(aggregation):
    k = np.array([[0.3, 1.7, 4.0], [2.0, -1.0, 0.8]])
    step = 1e-6 * np.eye(3)
    by_differences = [
        (slopes(aggregation, k + shift) - slopes(aggregation, k - shift)) / 2e-6 for shift in step
    ]
    np.testing.assert_allclose(hessians(aggregation, k), np.stack(by_differences, 2), rtol=1e-5, atol=1e-7)


@each_aggregation
def test_aggregation_is_finite_with_finite_multipliers_everywhere(aggregation):
    ends = jnp.asarray([[k, 0.0, 1.0] for k in (0, 1, -1, 1e-6, 1e6, -1e6)], jnp.float32)
    values, multipliers = in_single_precision(aggregation, ends)
    assert np.all(np.isfinite(values))
    assert np.all(np.isfinite(multipliers))


@each_aggregation
def test_aggregation_has_a_name_and_compiled_equals_eager(aggregation):
    k = jnp.asarray([0.5, 1.5, 20.0])
    assert aggregation.name
    np.testing.assert_allclose(eqx.filter_jit(aggregation)(k), aggregation(k), rtol=1e-6)


@each_closed
@given(share=shares)
@settings(max_examples=15)
def test_multiplier_at_the_maximiser_is_the_one_asked_for(aggregation, share):
    mu = feasible(aggregation, share)
    np.testing.assert_allclose(slopes(aggregation, maximisers(aggregation, mu)), mu, rtol=1e-9)


@each_closed
@given(share=shares, x=points)
@settings(max_examples=15)
def test_conjugate_bounds_every_point_and_agrees_with_the_slack_form(aggregation, share, x):
    mu = feasible(aggregation, share)
    bound = conjugates(aggregation, mu)
    gain = value(aggregation, x) - dot(mu, x)
    assert np.all(bound >= gain - 1e-10 * (1 + np.abs(gain)))
    np.testing.assert_allclose(bound, slack_conjugates(aggregation, maximisers(aggregation, mu)), rtol=1e-8)


@given(mu=arrays(np.float64, (8, 3), elements=st.floats(0.01, 10)))
def test_conjugate_of_the_piecewise_log_is_the_printed_one(mu):
    printed = np.where(mu < 1, -1 - np.log(mu), mu**2 / 2 - 2 * mu + 0.5)
    np.testing.assert_allclose(conjugates(AlphaFair(), mu), printed.sum(axis=1), rtol=1e-9, atol=1e-9)
    weighted = conjugates(AlphaFair(weights=WEIGHTS), mu * np.array(WEIGHTS))
    np.testing.assert_allclose(weighted, printed @ np.array(WEIGHTS), rtol=1e-9, atol=1e-9)


@given(k=points)
def test_linear_has_its_weights_as_multiplier_and_no_conjugate(k):
    np.testing.assert_array_equal(slopes(Linear(WEIGHTS), k), np.tile(WEIGHTS, (8, 1)))
    np.testing.assert_allclose(slack_conjugates(Linear(WEIGHTS), k), 0, atol=1e-12)


@given(k=points)
def test_weighted_log_is_the_weighted_sum_of_logs(k):
    single = [value(AlphaFair(weights=unit), k) for unit in np.eye(3)]
    np.testing.assert_allclose(value(AlphaFair(weights=WEIGHTS), k), np.array(WEIGHTS) @ single, rtol=1e-12)


@given(k=points, sharpness=st.floats(0.1, 30))
def test_smooth_minimum_lies_between_the_minimum_and_the_weighted_mean(k, sharpness):
    found = value(SmoothMinimum(sharpness, WEIGHTS), k)
    assert np.all(found >= k.min(axis=1) - 1e-12 * (1 + np.abs(k).max()))
    assert np.all(found <= k @ np.array(WEIGHTS) / sum(WEIGHTS) + 1e-12 * (1 + np.abs(k).max()))


@given(k=points)
def test_smooth_minimum_tends_to_the_mean_and_to_the_minimum(k):
    np.testing.assert_allclose(value(SmoothMinimum(1e-7), k), k.mean(axis=1), atol=1e-3)
    np.testing.assert_allclose(value(SmoothMinimum(1e5), k), k.min(axis=1), atol=2e-5)


@pytest.mark.parametrize("make", [lambda a: AlphaFair(Fair(a)), SmoothMinimum, Linear])
def test_aggregation_parameters_may_be_mapped_over(make):
    k, parameters = jnp.asarray([0.5, 2.0, 3.0]), np.array([0.25, 0.5, 1.0])
    mapped = jax.jit(jax.vmap(lambda a: make(a)(k)))(parameters)
    np.testing.assert_allclose(mapped, [value(make(a), k[None])[0] for a in parameters], rtol=1e-6)


def test_a_bare_function_becomes_an_aggregation_with_the_slack_form():
    aggregation = Objective(lambda r: r, lambda k: -jnp.sum(k**2)).aggregation
    k = jnp.asarray([1.0, 2.0])
    np.testing.assert_allclose(multiplier(aggregation, k), [-2, -4])
    np.testing.assert_allclose(slack_conjugate(aggregation, k), 5)


@pytest.mark.parametrize(
    ("aggregation", "name"),
    [
        (Linear(), "sum"),
        (Linear((1, 2)), "sum, weights (1, 2)"),
        (AlphaFair(Fair(1.0, 0.01, "linear")), "sum (log, linear below 0.01)"),
        (SmoothMinimum(5.0, (1, 3)), "smooth min [sharpness 5], weights (1, 3)"),
    ],
)
def test_name_of_an_aggregation_is_its_full_definition(aggregation, name):
    assert aggregation.name == name
