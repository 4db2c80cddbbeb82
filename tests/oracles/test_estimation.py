"""Estimators of E_π[F(R)] against exact values, on data that holds every episode as often as it happens."""

import dataclasses

import numpy as np
import pytest
from support.every_episode import every_episode, random_policy
from support.problems import random_tables

from aetdice import Episodes, bsr, enumerate_space
from aetdice.estimation.basis import RandomFeatures, Tabular
from aetdice.estimation.fitted import fitted_evaluation
from aetdice.estimation.importance import action_ratios, per_episode, per_step
from aetdice.estimation.marginal import marginal_ratios, weighted_utilities
from aetdice.estimation.recording import Recording
from aetdice.estimation.tabular_acting import TabularActing

OBJECTIVE = bsr(0.5)


@pytest.fixture(scope="module", params=[(0, False), (1, True), (2, True)])
def problem(request):
    """Recording, its weights, policy and behaviour as they act, and k of the policy."""
    seed, ends = request.param
    space = enumerate_space(random_tables(seed, ends=ends).momdp())
    behaviour, policy = random_policy(space, seed), random_policy(space, seed + 10)
    data, chances = every_episode(behaviour)
    recording = Recording.of(data, OBJECTIVE, 3)
    exact = policy.outcomes().expected_utilities(OBJECTIVE.utility)
    return recording, chances[None] * len(data), TabularActing(policy), TabularActing(behaviour), exact


def test_fitted_evaluation_is_exact_with_tables(problem):
    recording, weights, acting, _, exact = problem
    found = fitted_evaluation(recording, Tabular.of(recording, acting), weights)
    np.testing.assert_allclose(found.value[0], exact, atol=1e-9)


def test_the_dual_of_a_fixed_policy_is_exact_with_tables(problem):
    recording, weights, acting, _, exact = problem
    basis = Tabular.of(recording, acting)
    ratios = marginal_ratios(recording, basis, weights)
    np.testing.assert_allclose(weighted_utilities(recording, weights, ratios)[0], exact, atol=1e-9)
    first = recording.at(0)
    mass = weights[:, recording.episode[first]] * ratios[:, first]
    assert mass.sum() / weights.sum() == pytest.approx(1)


def test_importance_sampling_is_exact_with_the_true_behaviour(problem):
    recording, weights, acting, behaviour, exact = problem
    ratios = action_ratios(recording, acting, behaviour)
    for estimator in (per_episode, per_step):
        np.testing.assert_allclose(estimator(recording, weights, ratios)[0], exact, atol=1e-9)


class Mistaken(TabularActing):
    """A behaviour that was estimated wrongly."""

    def __init__(self, behaviour: TabularActing) -> None:
        vars(self).update(vars(behaviour))

    def probabilities(self, states):
        return super().probabilities(states)[:, ::-1]


def robust(recording, basis, weights, ratios):
    found = fitted_evaluation(recording, basis, weights, ratios[None])
    return (found.value + found.correction)[0]


def test_doubly_robust_is_right_if_either_part_is(problem):
    recording, weights, acting, behaviour, exact = problem
    right, wrong = (action_ratios(recording, acting, b) for b in (behaviour, Mistaken(behaviour)))
    table = Tabular.of(recording, acting)
    blank = {name: np.zeros_like(getattr(table, name)) for name in ("pair", "next_pair", "first_pair")}
    coarse = dataclasses.replace(table, sizes=np.ones_like(table.sizes), **blank)
    values_wrong = fitted_evaluation(recording, coarse, weights).value[0]
    assert np.abs(values_wrong - exact).max() > 0.01
    assert np.abs(per_episode(recording, weights, wrong)[0] - exact).max() > 0.01
    np.testing.assert_allclose(robust(recording, coarse, weights, right), exact, atol=1e-9)
    np.testing.assert_allclose(robust(recording, table, weights, wrong), exact, atol=1e-9)
    assert np.abs(robust(recording, coarse, weights, wrong) - exact).max() > 1e-3


def test_cut_recordings_are_made_up_for(problem):
    """Half of what goes on after the first step is cut there: every estimate stays as it was."""
    recording, weights, acting, behaviour, exact = problem
    data, own = recording.episodes, weights[0]
    goes_on = data.lengths > 1
    cut = Episodes.from_list([cut_short(data[i]) for i in np.flatnonzero(goes_on).tolist()])
    halved = Recording.of(Episodes.joined([data, cut]), OBJECTIVE, 3)
    shares = np.concatenate([np.where(goes_on, own / 2, own), own[goes_on] / 2])[None]
    np.testing.assert_allclose(halved.logged(shares), recording.logged(weights), atol=1e-9)
    basis = Tabular.of(halved, acting)
    ratios, products = marginal_ratios(halved, basis, shares), action_ratios(halved, acting, behaviour)
    for found in (
        fitted_evaluation(halved, basis, shares).value,
        weighted_utilities(halved, shares, ratios),
        per_episode(halved, shares, products),
        per_step(halved, shares, products),
        fitted_evaluation(halved, basis, shares, ratios).correction + exact,
    ):
        np.testing.assert_allclose(found[0], exact, atol=1e-9)


def cut_short(episode):
    return episode._replace(
        observations=episode.observations[:2],
        actions=episode.actions[:1],
        rewards=episode.rewards[:1],
        terminated=False,
        truncated=True,
    )


def test_features_are_near_where_tables_are_exact(problem):
    recording, weights, acting, _, exact = problem
    found = fitted_evaluation(recording, RandomFeatures.of(recording, acting), weights)
    np.testing.assert_allclose(found.value[0], exact, atol=0.15)
