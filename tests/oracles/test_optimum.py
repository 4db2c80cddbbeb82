"""`solve` against an independent convex program, brute force and its own policy."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.problems import Tables, random_tables
from support.programs import CASES, best_value, best_value_without_memory, branches, reachable

from aetdice import Objective, TabularMOMDP, enumerate_space, lsr, ser, solve
from aetdice.envs import FairTaxi, TwoStep
from aetdice.exact import Optimum, uniform_policy
from aetdice.objectives import Linear

INSTANCES = {
    "2-objectives": random_tables(0, 2, horizon=4),
    "2-objectives-ending": random_tables(1, 2, horizon=4, ends=True),
    "3-objectives": random_tables(2, 3, actions=3),
    "3-objectives-ending": random_tables(3, 3, ends=True),
    "5-objectives": random_tables(4, 5),
    "5-objectives-ending": random_tables(5, 5, ends=True),
}


SECOND = ("2-objectives", "3-objectives-ending", "5-objectives")
"""Of a kind that another instance has too: solved by `make test-all`."""


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=pytest.mark.slow if name in SECOND else ()) for name in INSTANCES],
)
def tables(request) -> Tables:
    return INSTANCES[request.param]


@functools.cache
def optimum_of(tables: Tables, name: str) -> Optimum:
    return solve(tables.momdp(), CASES[name].objective)


@pytest.mark.parametrize("name", CASES)
def test_value_equals_the_independent_program(tables, name):
    case, optimum = CASES[name], optimum_of(tables, name)
    assert optimum.value == pytest.approx(best_value(tables, case), abs=1e-6)
    assert 0 <= optimum.gap <= 1e-6
    assert optimum.outcomes.score(case.objective) == pytest.approx(optimum.value, abs=1e-8)
    assert optimum.outcomes.probabilities.sum() == pytest.approx(1, abs=1e-12)


def test_augmented_states_are_those_of_a_plain_enumeration(tables):
    acting, ending = reachable(tables)
    layers = enumerate_space(tables.momdp()).layers
    nodes = [
        (int(state), tuple(accrued), time, bool(final))
        for time, layer in enumerate(layers)
        for state, accrued, final in zip(layer.state, layer.accrued.tolist(), layer.final, strict=True)
    ]
    assert sorted(nodes) == sorted([(*node, False) for node in acting] + [(*node, True) for node in ending])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weights", [(1.0, 1.0), (1.0, -2.0)], ids=["sum", "against-the-second"])
def test_linear_optimum_equals_brute_force_over_deterministic_policies(seed, weights):
    tables = random_tables(seed, 2, horizon=2, states=2)
    acting, _ = reachable(tables)
    assert len(acting) <= 10

    def expected(node, choice) -> float:
        if node not in choice:
            return float(np.dot(weights, node[1]))
        return sum(p * expected(after, choice) for p, after in branches(tables, node, choice[node]))

    best = max(
        sum(tables.initial[node[0]] * expected(node, choice) for node in acting if node[2] == 0)
        for actions in itertools.product(range(2), repeat=len(acting))
        for choice in [dict(zip(acting, actions, strict=True))]
    )
    assert solve(tables.momdp(), lsr(weights)).value == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("tables", ["2-objectives-ending", "3-objectives", "5-objectives"], indirect=True)
@pytest.mark.parametrize(
    ("utility", "plain"),
    [
        pytest.param(lambda r: -r[0] * r[1], lambda r: -r[0] * r[1], id="negated-product"),
        pytest.param(
            lambda r: jnp.sum(jnp.exp(r / 4)), lambda r: np.sum(np.exp(r / 4)), id="sum-of-exponentials"
        ),
    ],
)
def test_scalar_utility_of_ones_own_equals_backward_recursion(tables, utility, plain):
    def best(node) -> float:
        if tables.terminal[node[0]] or node[2] == tables.horizon:
            return float(plain(np.array(node[1])))
        return max(
            sum(p * best(after) for p, after in branches(tables, node, action))
            for action in range(tables.transition.shape[1])
        )

    expected = sum(tables.initial[node[0]] * best(node) for node in reachable(tables)[0] if node[2] == 0)
    assert solve(tables.momdp(), Objective(utility, Linear())).value == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("tables", ["2-objectives", "2-objectives-ending"], indirect=True)
def test_linear_aggregation_may_be_moved_inside_the_expectation(tables):
    vector = Objective(lambda r: jnp.tanh(r / 3), Linear((0.7, 1.9)))
    scalar = Objective(lambda r: 0.7 * jnp.tanh(r[0] / 3) + 1.9 * jnp.tanh(r[1] / 3), Linear())
    values = [solve(tables.momdp(), objective).value for objective in (vector, scalar)]
    assert values[0] == pytest.approx(values[1], abs=1e-9)


@pytest.mark.parametrize("name", ["lsr", "ser", "smooth-min", "saturating"])
def test_linear_utility_needs_no_memory_of_accrued_reward(tables, name):
    expected = best_value_without_memory(tables, CASES[name])
    assert optimum_of(tables, name).value == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("reward", [-2.0, 0.0, 2.0])
def test_without_a_choice_the_value_is_that_of_the_only_return(reward):
    momdp = TabularMOMDP.from_arrays(np.zeros((1, 1), int), np.full((1, 1, 2), reward), 0, 3)
    optimum = solve(momdp, lsr((1.0, 0.5)))
    assert optimum.value == pytest.approx(4.5 * reward, abs=1e-12)
    np.testing.assert_allclose(optimum.expected_utilities, [3 * reward] * 2, atol=1e-12)


FIRST, SECOND = (4.0, 0.0), (0.0, 4.0)


def test_nonlinear_utility_remembers_what_chance_gave():
    """A coin gives 4 to one objective, then an action does; E[R_0 R_1] wants the other one."""

    def step(state, action):
        if state == "coin":
            return [(0.5, "choice", FIRST, False), (0.5, "choice", SECOND, False)]
        return [(1.0, "choice", (FIRST, SECOND)[action], True)]

    momdp, states = TabularMOMDP.from_function(step, 2, {"coin": 1.0}, 5)
    optimum = solve(momdp, Objective(lambda r: r[0] * r[1], Linear()))
    assert optimum.value == pytest.approx(16, abs=1e-9)
    np.testing.assert_allclose(optimum.policy.at(states.index("choice"), FIRST, 1), [0, 1])
    np.testing.assert_allclose(optimum.policy.at(states.index("choice"), SECOND, 1), [1, 0])


@pytest.mark.parametrize("name", ["ser", "esr", "bsr-0.5"])
def test_rollout_means_lie_within_five_standard_errors_of_the_exact_ones(tables, name):
    optimum = optimum_of(tables, name)
    returns = optimum.policy.rollout(4000, seed=0).returns
    error = returns.std(axis=0) / np.sqrt(len(returns))
    assert np.all(np.abs(returns.mean(axis=0) - optimum.outcomes.mean) <= 5 * error + 1e-9)
    assert np.any(error > 0)


def test_rollout_ends_where_the_problem_says(tables):
    episodes = uniform_policy(enumerate_space(tables.momdp())).rollout(500, seed=1)
    last = episodes.observations[np.cumsum(episodes.lengths + 1) - 1, 0]
    np.testing.assert_array_equal(episodes.terminated, tables.terminal[last])
    np.testing.assert_array_equal(episodes.truncated, ~tables.terminal[last])
    assert np.all(episodes.lengths[episodes.truncated] == tables.horizon)
    assert episodes.terminated.any() == tables.terminal.any()


def test_same_seed_same_rollout():
    policy = uniform_policy(enumerate_space(random_tables(0).momdp()))
    first, again, other = (policy.rollout(50, seed).rewards for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_policy_gives_probabilities_in_every_reachable_state(tables):
    policy = optimum_of(tables, "ser").policy
    for node in reachable(tables)[0]:
        chances = policy.at(*node)
        assert chances.shape == (tables.transition.shape[1],)
        assert chances.sum() == pytest.approx(1, abs=1e-12)
        assert np.all(chances >= 0)


def test_uniform_policy_has_the_expected_returns_of_a_forward_recursion(tables):
    arrival, mean = tables.initial, np.zeros(tables.reward.shape[3])
    for _ in range(tables.horizon):
        acting = np.where(tables.terminal, 0, arrival) / tables.transition.shape[1]
        moves = acting[:, None, None] * tables.transition
        mean = mean + np.einsum("sat,satm->m", moves, tables.reward)
        arrival = moves.sum(axis=(0, 1))
    outcomes = uniform_policy(enumerate_space(tables.momdp())).outcomes()
    np.testing.assert_allclose(outcomes.mean, mean, atol=1e-12)


def test_from_function_equals_from_arrays(tables):
    def step(state, action):
        for after in np.flatnonzero(tables.transition[state, action]):
            reward = tables.reward[state, action, after]
            yield tables.transition[state, action, after], int(after), reward, tables.terminal[after]

    initial = {int(state): tables.initial[state] for state in np.flatnonzero(tables.initial)}
    found, states = TabularMOMDP.from_function(step, tables.transition.shape[1], initial, tables.horizon)
    assert set(states) <= set(range(len(tables.initial)))
    spaces = enumerate_space(found), enumerate_space(tables.momdp())
    assert spaces[0].size == spaces[1].size
    distributions = [_sorted(uniform_policy(space).outcomes()) for space in spaces]
    np.testing.assert_allclose(*distributions, atol=1e-12)
    assert solve(spaces[0], ser()).value == pytest.approx(optimum_of(tables, "ser").value, abs=1e-9)


def _sorted(outcomes) -> np.ndarray:
    rows = np.column_stack([outcomes.returns, outcomes.probabilities])
    return rows[np.lexsort(outcomes.returns.T)]


@pytest.mark.parametrize(
    "environment",
    [
        TwoStep((2.0, 0.0)),
        FairTaxi(size=3, origins=((0, 0), (2, 2)), destinations=((0, 1), (2, 1)), start=(1, 1), horizon=5),
    ],
    ids=["two-step", "fair-taxi"],
)
def test_from_environment_equals_stepping_the_environment(environment):
    momdp = TabularMOMDP.from_environment(environment)
    key = jax.random.key(0)
    assert momdp.initial[int(environment.reset(key))] == 1
    assert (momdp.horizon, momdp.objectives) == (environment.horizon, environment.objectives)
    for state, action in itertools.product(range(environment.states), range(environment.actions)):
        after, reward, ended = environment.step(key, jnp.asarray(state), jnp.asarray(action))
        assert momdp.next_state[state, action, 0] == int(after)
        assert momdp.terminal[int(after)] == bool(ended)
        np.testing.assert_allclose(momdp.reward[state, action, 0], reward, rtol=1e-6)
        np.testing.assert_array_equal(momdp.observations[state], environment.observe(jnp.asarray(state)))


@pytest.mark.parametrize("unit", [0.1, 1 / 3, 1e-6, 1e6])
def test_sums_of_the_same_rewards_in_another_order_are_one_accrued_reward(unit):
    rewards = np.array([[[1.0, 3.0], [2.0, 1.0], [3.0, 2.0]]])
    layers, whole = (
        enumerate_space(TabularMOMDP.from_arrays(np.zeros((1, 3), int), scale * rewards, 0, 8)).layers
        for scale in (unit, 1.0)
    )
    assert [layer.state.size for layer in layers] == [layer.state.size for layer in whole]
    np.testing.assert_allclose(layers[-1].accrued, unit * whole[-1].accrued, rtol=1e-9)
