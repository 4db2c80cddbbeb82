"""Named objectives: their ends, regimes and names; J, its interval, and what the check accepts."""

import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from aetdice.objectives import (
    OBJECTIVES,
    UTILITIES,
    AlphaFair,
    Linear,
    Objective,
    Stack,
    bsr,
    check_objective,
    convex,
    esr,
    in_float64,
    lsr,
    named_objective,
    safe_cobb_douglas,
    ser,
    written_objective,
)

SIZES = {"safe-cobb-douglas": 3}  # every other named objective takes two returns
REGIMES = {
    "lsr": "linear",
    "ser": "SER",
    "esr": "ESR",
    "bsr": "AET",
    "convex": "ESR",
    "cobb-douglas": "ESR",
    "safe-cobb-douglas": "AET",
}

each_objective = pytest.mark.parametrize("name", OBJECTIVES)
returns_of_two = arrays(np.float64, (6, 2), elements=st.floats(-5, 100))
returns_above_one = arrays(np.float64, (6, 2), elements=st.floats(2, 100))

value = in_float64(lambda objective, returns: objective(returns))
value_under = in_float64(lambda objective, returns, probabilities: objective(returns, probabilities))
mean_of_sum = in_float64(lambda utility, weights, returns: jnp.mean(jax.vmap(utility)(returns) @ weights))


def example(name):
    """A named objective with 0.5 for whatever it requires."""
    required = [
        option
        for option, details in inspect.signature(OBJECTIVES[name]).parameters.items()
        if details.default is inspect.Parameter.empty
    ]
    return named_objective(name, dict.fromkeys(required, 0.5))


def sample(episodes, objectives=2, seed=0):
    return np.random.default_rng(seed).uniform(0, 100, (episodes, objectives))


@given(returns=returns_of_two)
def test_bsr_ends_are_esr_and_ser(returns):
    np.testing.assert_allclose(value(bsr(0.0), returns), value(esr(), returns), rtol=1e-12)
    np.testing.assert_allclose(value(bsr(1.0), returns), value(ser(), returns), rtol=1e-12)


@given(returns=arrays(np.float64, (6, 2), elements=st.floats(5, 100)), alpha=st.floats(0.1, 0.9))
def test_bsr_between_its_ends_is_the_printed_formula(returns, alpha):
    utilities = (returns**alpha - 1) / alpha
    expected_utilities = utilities.mean(axis=0)
    printed = np.sum((np.maximum(expected_utilities, 1) ** (1 - alpha) - 1) / (1 - alpha))
    assert np.all(expected_utilities >= 1)
    np.testing.assert_allclose(value(bsr(alpha), returns), printed, rtol=1e-9)


def test_bsr_half_of_the_mean_returns_107_and_58():
    assert value(bsr(0.5), np.array([[107.0, 58.0]])) == pytest.approx(11.9, abs=0.05)


@given(returns=returns_above_one)
def test_printed_bsr_jumps_by_the_number_of_objectives_next_to_esr(returns):
    near = value(bsr(1e-8), returns)
    np.testing.assert_allclose(near, value(esr(), returns) - 2, atol=1e-4)


@given(returns=returns_above_one)
def test_printed_bsr_next_to_ser_sees_the_mean_return_less_one(returns):
    near = value(bsr(1 - 1e-8), returns)
    np.testing.assert_allclose(near, value(ser(), returns - 1), atol=1e-4)


def test_bsr_mapped_over_alpha_equals_a_loop_ends_included():
    returns, alphas = sample(6), np.array([0.0, 0.25, 0.5, 0.75, 1.0])
    mapped = in_float64(lambda a, r: jax.vmap(lambda alpha: bsr(alpha)(r))(a))(alphas, returns)
    np.testing.assert_allclose(mapped, [value(bsr(alpha), returns) for alpha in alphas], rtol=1e-12)


def test_objectives_at_other_parameters_do_not_retrace():
    traces = []

    @eqx.filter_jit
    def traced(objective):
        traces.append(objective)
        return objective(jnp.ones((3, 2)))

    for alpha in (0.0, 0.3, 0.7, 1.0):
        traced(bsr(alpha, threshold=1 + alpha))
    assert len(traces) == 1


@given(returns=returns_of_two)
def test_ser_is_at_least_esr(returns):
    assert value(ser(), returns) >= value(esr(), returns) - 1e-12


@each_objective
def test_regime_of_a_named_objective(name):
    assert example(name).regime(SIZES.get(name, 2)) == REGIMES[name]


@pytest.mark.parametrize(
    ("objective", "objectives", "regime"),
    [
        (bsr(0.0), 2, "ESR"),
        (bsr(1.0), 2, "SER"),
        (convex(aggregation=AlphaFair()), 2, "AET"),
        (safe_cobb_douglas(log_inside=True), 3, "AET"),
        (esr(threshold=100.0, continuation="linear"), 2, "ESR"),  # affine up to 100 only
        (Objective(lambda r: 3 * r - 1, lambda k: k[0] - k[1]), 2, "linear"),
        (written_objective("log(r0), r1 - 0.8*horizon", "log", 2, 10), 2, "AET"),
    ],
)
def test_regime_is_read_from_the_functions_themselves(objective, objectives, regime):
    assert objective.regime(objectives) == regime


@each_objective
def test_check_accepts_a_named_objective_where_returns_are_usual(name):
    check_objective(example(name), sample(20, SIZES.get(name, 2)) - 10)


def test_check_accepts_all_registered_utilities_side_by_side():
    check_objective(Objective(Stack(tuple(make() for make in UTILITIES.values())), Linear()), sample(20))


def test_expected_utility_starts_from_that_of_no_reward_at_all():
    nothing = np.zeros((6, 2))
    np.testing.assert_allclose(value(esr(), nothing), 2 * -1.5)  # the piecewise log at 0
    np.testing.assert_allclose(value(convex(), nothing), 2)


def test_lsr_is_the_weighted_sum_of_mean_returns():
    returns = np.array([[1.0, 10.0], [3.0, 30.0]])
    np.testing.assert_allclose(value(lsr((2.0, 0.5)), returns), 2 * 2 + 0.5 * 20)
    np.testing.assert_allclose(value(lsr(), returns), 22)


def test_safe_cobb_douglas_is_efficiency_and_margin_under_logs():
    returns = np.array([[400.0, 100.0, 900.0]])
    expected = np.log(np.sqrt(400) / np.sqrt(100.001)) + np.log((900 - 400) / 500)
    np.testing.assert_allclose(value(safe_cobb_douglas(), returns), expected, rtol=1e-9, atol=1e-9)


def test_probabilities_count_an_episode_as_often_as_it_occurs():
    returns = np.array([[2.0, 5.0], [7.0, 3.0]])
    weighted = value_under(bsr(0.5), returns, np.array([0.75, 0.25]))
    np.testing.assert_allclose(weighted, value(bsr(0.5), returns[[0, 0, 0, 1]]), rtol=1e-12)


@pytest.mark.parametrize("name", UTILITIES)
@given(returns=returns_of_two)
@settings(max_examples=5)
def test_scalar_utility_equals_the_vector_form_under_a_linear_aggregation(name, returns):
    utility = UTILITIES[name]()
    weights = np.arange(1.0, 1 + jax.eval_shape(utility, jnp.ones(2)).size)
    vector = value(Objective(utility, Linear(weights)), returns)
    np.testing.assert_allclose(vector, mean_of_sum(utility, weights, returns), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("objective", "name"),
    [
        (ser(threshold=0.01), "SER: F = R; G = sum (log, quadratic below 0.01)"),
        (esr(continuation="linear"), "ESR: F = log, linear below 1; G = sum"),
        (
            bsr(0.25, threshold=0.1, aggregation_threshold=2.0),
            "BSR[alpha=0.25]: F = u[a=0.75], quadratic below 0.1; G = sum (u[a=0.25], quadratic below 2)",
        ),
        (lsr((1, 2)), "LSR: F = R; G = sum, weights (1, 2)"),
    ],
)
def test_name_of_an_objective_is_its_full_definition(objective, name):
    assert objective.name == name


# The bootstrap interval.


def score(episodes, seed=0, **options):
    return bsr(0.5).score(sample(episodes), jax.random.key(seed), resamples=200, **options)


def test_interval_contains_the_value_and_both_move_with_the_data():
    found = score(40)
    assert found.low < found.value < found.high
    assert (found.level, found.episodes) == (0.95, 40)
    assert found.value == pytest.approx(float(value(bsr(0.5), sample(40))), rel=1e-5)


def test_interval_widens_with_its_level():
    wide, narrow = score(40), score(40, level=0.5)
    assert wide.low < narrow.low < narrow.high < wide.high


def test_interval_narrows_with_more_episodes():
    few, many = score(40), score(600)
    assert many.high - many.low < (few.high - few.low) / 2


def test_interval_is_reproducible_from_its_key():
    assert score(40, seed=3) == score(40, seed=3)
    assert score(40, seed=3) != score(40, seed=4)


def test_interval_of_a_mean_is_as_wide_as_normal_theory_says():
    returns = sample(200, 1)
    found = lsr().score(returns, jax.random.key(0), resamples=2000, level=0.9)
    assert (found.high - found.low) / 2 == pytest.approx(1.645 * returns.std() / np.sqrt(200), rel=0.1)


def test_safe_cobb_douglas_takes_one_logarithm_inside_or_none():
    """log E[efficiency] + log E[margin], or log E[efficiency] + E[log margin]."""
    returns = np.array([[100.0, 4.0, 900.0], [50.0, 1.0, 600.0]])
    efficiency = np.sqrt(returns[:, 0]) / np.sqrt(returns[:, 1])
    margin = (returns[:, 2] - 400) / 500
    outside = np.log(efficiency.mean()) + np.log(margin.mean())
    inside = np.log(efficiency.mean()) + np.log(margin).mean()
    for log_inside, expected in ((False, outside), (True, inside)):
        found = float(safe_cobb_douglas(log_inside=log_inside)(jnp.asarray(returns, jnp.float32)))
        assert found == pytest.approx(expected, abs=2e-3)
