"""Weights of whole episodes: the optimum of the convex program, by its optimality conditions."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.ragged import HORIZON, ragged
from support.training import TINY, tiny_episodes

from aetdice import Episodes, Objective, TrainingConfig, bsr, convex, esr, lsr, ser, train
from aetdice.algorithms import ALGORITHMS
from aetdice.algorithms.episode_weighting import LEAST_EPISODES, EpisodeState
from aetdice.errors import InputError
from aetdice.exact.episode_weights import episode_weights, weights_of_size
from aetdice.exact.mixtures import best_mixture
from aetdice.learning.inputs import onto_device
from aetdice.learning.setup import readable
from aetdice.learning.source import weigh
from aetdice.objectives import DIVERGENCES, in_float64

RETURNS = np.random.default_rng(0).uniform(0, 8, (60, 2)).round(1)
BLANK = EpisodeState(jnp.zeros(()), jnp.zeros(2), jnp.ones(()), jnp.zeros((8, 2)))
"""Whatever it is before the program is solved."""
OBJECTIVES = {"esr": esr(), "bsr": bsr(0.5), "ser": ser(), "linear": lsr((0.3, 0.7)), "convex": convex()}


def utilities(objective: Objective) -> np.ndarray:
    return np.asarray(in_float64(eqx.filter_vmap(objective.utility))(RETURNS))


@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize("name", OBJECTIVES)
def test_weights_satisfy_the_optimality_conditions(name, divergence):
    """μ·F(R_i) - βφ'(w_i) is the same wherever w_i > 0, and no larger where w_i = 0."""
    objective, phi, beta = OBJECTIVES[name], DIVERGENCES[divergence](), 0.3
    solved = episode_weights(objective, RETURNS, beta, phi)
    assert solved.ratios.min() >= 0
    assert solved.ratios.mean() == pytest.approx(1, abs=1e-9)
    attained = solved.ratios @ utilities(objective) / len(RETURNS)
    np.testing.assert_allclose(solved.slack, attained, atol=1e-8)
    slope = np.asarray(in_float64(jax.grad(objective.aggregation))(attained))
    marginal = in_float64(jax.vmap(jax.grad(phi)))(np.maximum(solved.ratios, 1e-12))
    gain = utilities(objective) @ slope - beta * np.asarray(marginal)
    used = solved.ratios > 1e-9
    assert np.ptp(gain[used]) < 1e-6
    assert gain[~used].size == 0 or gain[~used].max() <= gain[used].mean() + 1e-6


@pytest.mark.parametrize("name", ["esr", "bsr", "ser"])
def test_without_regularisation_they_are_the_best_mixture(name):
    objective = OBJECTIVES[name]
    solved = weights_of_size(objective, RETURNS, 1e-3)
    best = best_mixture(objective, RETURNS)
    value = float(in_float64(objective.aggregation)(solved.slack))
    assert value == pytest.approx(best.value, abs=1e-3)
    assert value <= best.value + 1e-9


def test_they_rest_on_the_share_of_episodes_that_was_asked_for():
    sizes = (0.9, 0.5, 0.2, 0.1)
    solved = [weights_of_size(ser(), RETURNS, size) for size in sizes]
    np.testing.assert_allclose([each.sample_size for each in solved], sizes, rtol=3e-3)
    assert np.all(np.diff([each.beta for each in solved]) < 0)
    with pytest.raises(InputError, match="sample_size is a share"):
        weights_of_size(ser(), RETURNS, 0.0)


def test_the_algorithm_weighs_all_steps_of_an_episode_alike_and_as_the_program_does():
    data, objective = tiny_episodes(), bsr(0.5)
    learner = ALGORITHMS["episode-weighting"](3, TINY)
    device = onto_device(data, 3, learner)
    hyper = learner.hyper(objective, 1e-3, sample_size=0.3)
    weighing = weigh(learner, learner.finish(BLANK, hyper, device), hyper, device)
    solved = weights_of_size(objective, data.returns, 0.3)
    np.testing.assert_allclose(
        np.asarray(weighing.weights) * len(data), np.repeat(solved.ratios, data.lengths), atol=1e-4
    )
    assert float(weighing.metrics["effective_episodes"]) == pytest.approx(0.3 * len(data), rel=1e-2)


def test_recordings_that_were_cut_are_not_cloned():
    learner = ALGORITHMS["episode-weighting"](HORIZON, TINY)
    hyper = learner.hyper(ser(), 1e-3, sample_size=1.0)
    found = [
        weigh(learner, learner.finish(BLANK, hyper, device), hyper, device)
        for device in (ragged(cut=cut, n_step=HORIZON) for cut in (True, False))
    ]
    cut = found[0].weights.shape[0] - found[1].weights.shape[0]
    assert cut == 2
    assert not np.any(found[0].weights[-cut:])
    assert np.all(found[1].weights > 0)
    np.testing.assert_allclose(found[0].metrics["effective_episodes"], 5, rtol=0.05)


def test_they_never_rest_on_hardly_any_episodes():
    learner = ALGORITHMS["episode-weighting"](3, TINY)
    device = onto_device(tiny_episodes(), 3, learner)
    hyper = learner.hyper(esr(), 1e-3, sample_size=1e-3)
    metrics = weigh(learner, learner.finish(BLANK, hyper, device), hyper, device).metrics
    assert float(metrics["effective_episodes"]) >= LEAST_EPISODES


def test_joined_episodes_of_no_use_do_not_make_the_weights_rest_on_more():
    """Episodes may be joined for other objectives of the population."""
    learner, recorded = ALGORITHMS["episode-weighting"](3, TrainingConfig()), tiny_episodes()
    hyper = learner.hyper(esr(), 1e-3, sample_size=0.2)
    worst = recorded.select(np.argsort(recorded.returns.sum(axis=1))[:25])
    joined = Episodes.joined([recorded, worst])
    counts = []
    for episodes in (recorded, joined):
        device = onto_device(episodes, 3, learner, recorded=recorded.steps)
        counts.append(weigh(learner, learner.finish(BLANK, hyper, device), hyper, device).metrics)
    alone, beside = (float(metrics["effective_episodes"]) for metrics in counts)
    assert beside == pytest.approx(alone, rel=1e-3)


def test_the_optimum_is_reached_also_where_beta_has_no_effect_for_a_while():
    """BSR mixes two behaviours: once the best one is found a smaller β seems to change nothing."""
    rng = np.random.default_rng(0)
    returns = np.repeat([[2.0, 1.5], [7.0, 0.0], [3.0, 1.0], [0.0, 3.5]], 30, axis=0)
    returns = np.concatenate([returns, rng.uniform(0, 2, (200, 2))])
    best = best_mixture(bsr(0.5), returns).value
    solved = weights_of_size(bsr(0.5), returns, 1e-3)
    assert float(in_float64(bsr(0.5).aggregation)(solved.slack)) == pytest.approx(best, abs=1e-5)


@pytest.mark.trains
def test_a_policy_is_cloned_from_the_weights():
    run = train(
        tiny_episodes(),
        esr(),
        algorithm="episode-weighting",
        sample_size=[0.5, 0.2],
        config=readable(TINY, "episode-weighting"),
        progress=False,
    )
    claims = [member.diagnostics["claimed_value"] for member in run.members]
    assert claims[1] > claims[0]
    assert [member.params["sample_size"] for member in run.members] == [0.5, 0.2]
