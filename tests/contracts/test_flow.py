"""The flow's mass, and the dual loss sample by sample."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import TypeCheckError

from aetdice.data import Episode, Episodes, augment
from aetdice.dice import Discounted, FiniteHorizon, dual_loss, ratio, residual
from aetdice.objectives import (
    AGGREGATIONS,
    DIVERGENCES,
    AlphaFair,
    ChiSquare,
    Identity,
    Linear,
    in_float64,
    multiplier,
    second_order,
)

LENGTHS = (1, 1, 2, 3, 4, 4, 5)
HORIZON = 5

violation = in_float64(
    lambda flow, mass, time, ended: flow.mass_violation(mass, time, ended.astype(mass.dtype))
)


@st.composite
def endings(draw):
    """How the episodes of `LENGTHS` end, in some order; one goes up to the horizon."""
    ways = st.sampled_from([(True, False), (False, True), (True, True)])
    ends = [*draw(st.tuples(*[ways] * (len(LENGTHS) - 1))), (False, True)]
    return draw(st.permutations(list(zip(LENGTHS, ends, strict=True))))


def steps(episodes):
    data = Episodes.from_list(
        Episode(np.zeros(n + 1), np.zeros(n), np.ones((n, 2)), *end) for n, end in episodes
    )
    return augment(data, Identity(), HORIZON)


@given(episodes=endings())
def test_data_conserve_their_own_mass(episodes):
    data = steps(episodes)
    flow = FiniteHorizon(HORIZON)
    weights = in_float64(lambda w: flow.transition_weights(w, len(data.weights)))(data.weights)
    assert violation(flow, weights, data.time, data.terminated) == pytest.approx(0, abs=1e-12)


@given(episodes=endings(), which=st.integers(0, sum(LENGTHS) - 1), excess=st.floats(0.1, 10))
def test_one_wrong_ratio_violates_the_mass_by_its_excess(episodes, which, excess):
    data = steps(episodes)
    ratios = np.ones(len(data.time))
    ratios[which] += excess
    found = violation(FiniteHorizon(HORIZON), ratios * data.weights, data.time, data.terminated)
    assert found == pytest.approx(excess * data.weights[which], rel=1e-9)


def test_mass_that_never_entered_is_a_violation():
    data = (np.zeros(3), np.arange(3), np.zeros(3, bool))
    assert violation(FiniteHorizon(3), *data) == 1


@given(gamma=st.floats(0.1, 0.99), quits=st.floats(0.1, 0.9))
def test_discounted_mass_is_conserved_when_each_step_keeps_gamma_of_it(gamma, quits):
    total = (1 - gamma) / (1 - gamma * (1 - quits))
    mass, ended = total * np.array([1 - quits, quits]), np.array([False, True])
    flow = Discounted(gamma)
    assert violation(flow, mass, np.zeros(2, int), ended) == pytest.approx(0, abs=1e-12)
    doubled = violation(flow, 2 * mass, np.zeros(2, int), ended)
    assert doubled == pytest.approx(1, rel=1e-9)  # as much too much as should have entered


def test_discounted_flow_averages_over_steps_in_units_of_return():
    flow = Discounted(0.9)
    np.testing.assert_allclose(flow.transition_weights(jnp.asarray([0.1, 0.7, 0.2, 0.5]), 4), 0.25)
    np.testing.assert_allclose([flow.initial_weight, flow.discount, flow.reward_scale], [0.1, 0.9, 10])


def test_residual_is_reward_plus_what_follows_less_what_was():
    reward = jnp.asarray([[1.0, 2.0], [3.0, 4.0]])
    nu, next_nu, mu = jnp.asarray([0.5, 0.25]), jnp.asarray([2.0, 0.0]), jnp.asarray([1.0, 0.1])
    np.testing.assert_allclose(residual(reward, nu, next_nu, mu, FiniteHorizon(3)), [2.7, 3.15], rtol=1e-6)
    np.testing.assert_allclose(residual(reward, nu, next_nu, mu, Discounted(0.5)), [2.9, 6.55], rtol=1e-6)


# The dual loss.

STEPS, STARTS = 5, 3
rng = np.random.default_rng(0)
RESIDUALS, INITIAL = jnp.asarray(rng.normal(size=STEPS)), jnp.asarray(rng.normal(size=STARTS))
REWARDS = jnp.asarray(rng.normal(size=(STEPS, 2)))
WEIGHTS = jnp.asarray(rng.uniform(0.1, 1, STEPS))
SLACK, ZERO = jnp.asarray([0.5, 2.0]), jnp.asarray([-1.5, 0.3])


def loss(
    residuals=RESIDUALS, initial=INITIAL, slack=SLACK, weights=WEIGHTS, *, flow=FiniteHorizon(4), **options
):
    return dual_loss(
        initial,
        residuals,
        slack,
        ZERO,
        initial_weights=jnp.full(STARTS, 1 / STARTS),
        weights=weights,
        beta=0.5,
        **({"divergence": ChiSquare(), "aggregation": AlphaFair(), "flow": flow} | options),
    )


gradient = jax.jit(jax.grad(lambda e, weights: loss(e, weights=weights)))


@pytest.mark.parametrize("make", DIVERGENCES.values(), ids=DIVERGENCES.keys())
def test_slope_in_a_residual_is_its_weight_times_its_ratio(make):
    slope = jax.jit(jax.grad(lambda e: loss(e, divergence=make())))(RESIDUALS)
    np.testing.assert_allclose(slope, WEIGHTS * ratio(RESIDUALS, 0.5, make()), rtol=1e-5)


@pytest.mark.parametrize("changed", range(STEPS))
def test_weight_and_residual_of_a_sample_move_only_its_own_gradient(changed):
    before = gradient(RESIDUALS, WEIGHTS)
    after = gradient(RESIDUALS.at[changed].set(3.0), WEIGHTS.at[changed].set(2.0))
    others = np.arange(STEPS) != changed
    np.testing.assert_array_equal(after[others], before[others])
    np.testing.assert_allclose(after[changed], 2 * (1 + 3 / 0.5), rtol=1e-6)


def test_loss_by_hand():
    found = loss(jnp.zeros(STEPS).at[0].set(1.0), slack=jnp.asarray([2.0, 2.0]))
    entering = float(INITIAL.mean())
    regularised = float(WEIGHTS[0]) * 0.5 * (2 + 2)  # β(y + y²/2) at y = 1/β
    offset, conjugate = 0.5 * (-1.5 + 0.3), 2 * (np.log(2) - 1)
    assert float(found) == pytest.approx(entering + regularised + offset + conjugate, rel=1e-5)


def test_discounted_flow_scales_the_initial_term():
    difference = loss(flow=Discounted(0.9)) - loss()
    assert float(difference) == pytest.approx(-0.9 * float(INITIAL.mean()), rel=1e-4)


def test_linear_aggregation_makes_the_loss_blind_to_the_slack():
    slope = jax.grad(lambda k: loss(slack=k, aggregation=Linear((1.0, 2.0))))(SLACK)
    np.testing.assert_allclose(slope, 0, atol=1e-6)


@pytest.mark.parametrize("make", AGGREGATIONS.values(), ids=AGGREGATIONS.keys())
def test_slope_in_the_slack_is_the_curvature_times_what_the_slack_lacks(make):
    aggregation, nu = make(), jnp.asarray([0.3, -0.2, 0.5, 0.1, 0.0])

    def residuals_at(slack):
        return residual(REWARDS, nu, jnp.zeros(STEPS), multiplier(aggregation, slack), FiniteHorizon(4))

    def expected(slack):
        mass = WEIGHTS * ratio(residuals_at(slack), 0.5, ChiSquare())
        return second_order(aggregation, slack)[2] @ (ZERO + mass @ REWARDS - slack)

    slope = jax.jit(jax.grad(lambda k: loss(residuals_at(k), slack=k, aggregation=aggregation)))(SLACK)
    np.testing.assert_allclose(slope, jax.jit(expected)(SLACK), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "broken",
    [
        {"residuals": RESIDUALS[:, None]},
        {"weights": WEIGHTS[:, None]},
        {"weights": WEIGHTS[:-1]},
        {"initial": INITIAL[:, None]},
        {"slack": SLACK[None]},
    ],
    ids=["residuals (B, 1)", "weights (B, 1)", "too few weights", "initial (N, 1)", "slack (1, n)"],
)
def test_loss_sees_flat_vectors_of_equal_length_only(broken):
    with pytest.raises(TypeCheckError, match="dual_loss"):
        loss(**broken)


@pytest.mark.parametrize("position", [1, 2])
def test_residual_refuses_a_column_where_a_vector_belongs(position):
    arguments = [REWARDS, RESIDUALS, RESIDUALS, SLACK]
    arguments[position] = arguments[position][:, None]
    with pytest.raises(TypeCheckError, match="residual"):
        residual(*arguments, FiniteHorizon(4))


@given(beta=st.floats(0.01, 10))
@settings(max_examples=10)
def test_ratio_is_taken_at_the_residual_over_beta(beta):
    np.testing.assert_allclose(
        ratio(RESIDUALS, beta, ChiSquare()), np.maximum(0, 1 + np.asarray(RESIDUALS) / beta), rtol=1e-4
    )
