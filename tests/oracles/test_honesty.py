"""Certificates and refusals hold where numbers are awkward: huge, tiny, steep or nearly equal."""

import jax.numpy as jnp
import numpy as np
import pytest

from aetdice.data import Episode, Episodes
from aetdice.envs import FairTaxi, FiniteEnvironment, TwoStep
from aetdice.errors import InputError
from aetdice.exact import OfflineProblem, TabularMOMDP, TabularPolicy, enumerate_space, solve, solve_dual
from aetdice.objectives import Identity, Objective, SmoothMinimum, bsr, check_objective, esr, lsr, ser


def one_state(rewards, horizon=2):
    rewards = np.asarray(rewards, float)[None]
    return TabularMOMDP.from_arrays(np.zeros((1, rewards.shape[1]), int), rewards, 0, horizon)


@pytest.mark.parametrize(
    ("rewards", "best"),
    [([[-1e10], [1], [3]], 6.0), ([[1e-10], [5e-10], [2e-10]], 1e-9), ([[1e10], [1e10 + 1], [0]], 2e10 + 2)],
    ids=["one huge penalty", "all tiny", "huge and nearly equal"],
)
def test_returns_of_very_different_size_are_told_apart(rewards, best):
    np.testing.assert_allclose(solve(one_state(rewards), lsr()).value, best, rtol=1e-12)


def test_returns_that_cancel_are_exactly_zero():
    outcomes = solve(one_state([[0.1, 0.0], [0.2, 0.0], [-0.3, 1.0]], horizon=3), lsr((0.0, 1.0))).outcomes
    space = enumerate_space(one_state([[0.1], [0.2], [-0.3]], horizon=3))
    ends = space.layers[-1].accrued[:, 0]
    assert np.count_nonzero(np.abs(ends) < 1e-9) == 1
    assert 0.0 in ends
    assert outcomes.probability(lambda r: r[1] == 3) == 1


@pytest.mark.parametrize("sharpness", [20.0, 1e3, 1e5])
@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_a_steep_smooth_minimum_is_certified(sharpness, scale):
    rng = np.random.default_rng(3)
    transition = rng.dirichlet(np.ones(3), (3, 3))
    reward = scale * rng.integers(0, 4, (3, 3, 3)).astype(float)
    momdp = TabularMOMDP.from_arrays(transition, reward, 0, 3)
    optimum = solve(momdp, Objective(Identity(), SmoothMinimum(sharpness)), check=False)
    assert optimum.gap <= 1e-6 * scale
    assert optimum.outcomes.score(optimum.objective) == pytest.approx(optimum.value, abs=1e-8 * scale)


class Revolving(FiniteEnvironment):
    """One state of its own whose entry ends the episode for action 1 only."""

    horizon = property(lambda self: 3)
    objectives = property(lambda self: ("only",))
    actions = property(lambda self: 2)
    states = property(lambda self: 2)
    initial_state = property(lambda self: 0)
    observation_sizes = property(lambda self: (2,))
    reward_bounds = property(lambda self: (np.zeros(1), np.ones(1)))

    def transition(self, state, action):
        return jnp.ones_like(state), jnp.ones(1), action == 1

    def observe(self, state):
        return jnp.asarray(state, jnp.int32)[None]

    def text(self, state):
        return ""

    def picture(self, state, path=()):
        return np.zeros((1, 1, 3), np.uint8)


def test_an_environment_whose_ending_shares_a_state_is_refused():
    with pytest.raises(InputError, match="both by ending and by going on"):
        TabularMOMDP.from_environment(Revolving())


@pytest.fixture(scope="module")
def episodes():
    rng = np.random.default_rng(0)
    return Episodes.from_list(
        [
            Episode(np.zeros((3, 1), int), rng.integers(0, 2, 2), rng.integers(0, 3, (2, 2)), False, True)
            for _ in range(40)
        ]
    )


@pytest.mark.parametrize(
    ("aggregation", "message"),
    [(lambda k: jnp.sum(k**2), "G is not concave"), (lambda k: jnp.min(k), "G is not smooth")],
)
def test_the_offline_problem_refuses_an_ill_posed_objective(episodes, aggregation, message):
    with pytest.raises(InputError, match=message):
        OfflineProblem.from_episodes(episodes, Objective(Identity(), aggregation))


def test_a_dual_that_has_not_converged_says_so(episodes):
    problem = OfflineProblem.from_episodes(episodes, bsr(0.5))
    with pytest.raises(InputError, match="the dual has not converged"):
        solve_dual(problem, 1e-3, max_steps=1)
    assert solve_dual(problem, 1e-3).violation < 1e-8


def test_a_steep_bend_is_not_taken_for_a_jump():
    check_objective(ser(threshold=1e-9), np.array([[0.0, 0.0], [10.0, 10.0]]))
    check_objective(esr(), np.array([[0.0, 0.0], [1e9, 1e9]]))


def test_rewards_that_overflow_when_summed_are_refused():
    with pytest.raises(InputError, match="too large to be summed"):
        one_state([[1e308], [0.0]], horizon=3)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: TabularMOMDP.from_arrays(np.zeros((1, 1), int), np.ones((1, 1, 1)), 0, 2.5), "whole number"),
        (lambda: FairTaxi(start=(1.5, 1)), "start must be a whole number"),
        (lambda: FairTaxi(start=(1, 1, 1)), "a row and a column"),
    ],
)
def test_whole_numbers_are_asked_for(without_type_checks, build, message):
    with pytest.raises(InputError, match=message):
        build()


def test_cells_may_be_lists():
    assert FairTaxi(origins=[[0, 0], [8, 8]]).origins == ((0, 0), (8, 8))


def test_a_policy_must_hold_probabilities():
    space = enumerate_space(TabularMOMDP.from_environment(TwoStep()))
    rows = [np.full((layer.live.size, 3), 1.0) for layer in space.layers[:-1]]
    with pytest.raises(InputError, match="do not sum to 1"):
        TabularPolicy(space, rows)
    with pytest.raises(InputError, match="one row per live"):
        TabularPolicy(space, rows[:1])
