"""The regularised offline problem: dual against program, both against a formulation from the episodes."""

import functools
import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from support.problems import GO_ON, QUIT, chain_episodes, random_tables, uniform_episodes
from support.programs import CASES, regularised_value

from aetdice import (
    Episode,
    Episodes,
    OfflineProblem,
    TabularMOMDP,
    enumerate_space,
    esr,
    ser,
    solve,
    solve_dual,
    solve_program,
)
from aetdice.dice import Discounted, FiniteHorizon, Flow
from aetdice.exact import uniform_policy
from aetdice.objectives import DIVERGENCES

GAMMA = 0.9


@dataclass(frozen=True)
class Instance:
    seed: int
    objectives: int = 2
    ends: bool = False
    discounted: bool = False

    def momdp(self) -> TabularMOMDP:
        return random_tables(self.seed, self.objectives, ends=self.ends).momdp()

    def episodes(self) -> Episodes:
        return uniform_episodes(self.momdp(), 40, self.seed)

    @property
    def flow(self) -> Flow:
        return Discounted(GAMMA) if self.discounted else FiniteHorizon(3)


@functools.cache
def problem_of(instance: Instance, name: str) -> OfflineProblem:
    """Solved with several divergences."""
    return OfflineProblem.from_episodes(instance.episodes(), CASES[name].objective, flow=instance.flow)


INSTANCES = {
    "full-length": Instance(0),
    "full-length-3-objectives": Instance(2, objectives=3),
    "ending": Instance(1, ends=True),
    "ending-3-objectives": Instance(3, objectives=3, ends=True),
    "discounted": Instance(4, discounted=True),
    "discounted-ending": Instance(5, ends=True, discounted=True),
}
SECOND = ("full-length", "ending-3-objectives", "discounted")
"""Of a kind that another instance has too: solved by `make test-all`."""
EVERY_INSTANCE = [
    pytest.param(instance, id=name, marks=pytest.mark.slow if name in SECOND else ())
    for name, instance in INSTANCES.items()
]


@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize("name", ["esr", "bsr-0.5", "ser"])
@pytest.mark.parametrize("instance", EVERY_INSTANCE)
def test_dual_equals_program(instance, name, divergence):
    check_dual_against_program(instance, name, divergence)


@pytest.mark.parametrize("name", ["lsr", "bsr-0.3", "smooth-min"])
def test_dual_equals_program_for_every_aggregation(name):
    check_dual_against_program(INSTANCES["ending"], name, "chi2")


def check_dual_against_program(instance: Instance, name: str, divergence: str) -> None:
    problem = problem_of(instance, name)
    dual = solve_dual(problem, 0.1, DIVERGENCES[divergence]())
    program = solve_program(problem, 0.1, DIVERGENCES[divergence]())
    assert abs(dual.value - program.value) <= 1e-7
    assert problem.mass_violation(dual.ratio) <= 1e-8
    assert problem.mass_violation(program.ratio) <= 1e-7
    assert problem.primal_value(dual.ratio, 0.1, DIVERGENCES[divergence]()) == pytest.approx(
        dual.value, abs=1e-7
    )
    visited = np.bincount(problem.node, dual.ratio * problem.mass, minlength=problem.nodes) > 1e-6
    difference = np.abs(dual.policy_table() - program.policy_table())[visited]
    assert difference.max() <= 1e-4


@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize("name", ["bsr-0.5", "saturating", "saturating-product"])
@pytest.mark.parametrize("instance", EVERY_INSTANCE)
def test_dual_equals_a_formulation_from_the_episodes(instance, name, divergence):
    """Also for a G of which nobody knows the conjugate."""
    case, episodes, problem = CASES[name], instance.episodes(), problem_of(instance, name)
    dual = solve_dual(problem, 0.2, DIVERGENCES[divergence]())
    discount = GAMMA if instance.discounted else None
    expected = regularised_value(episodes, case, 0.2, divergence, discount=discount)
    assert dual.value == pytest.approx(expected, abs=1e-6)
    assert problem.mass_violation(dual.ratio) <= 1e-8


# A chain whose data quits with probability 0.3: nothing to gain, so nothing may change.


@pytest.fixture(scope="module", params=[0.0, 0.15], ids=["whole", "cut-off-at-random"])
def chain(request) -> tuple[OfflineProblem, np.ndarray, np.ndarray]:
    """The chain's problem, and the data's own hazards with their standard errors."""
    episodes = chain_episodes(1500, seed=0, cutting=request.param)
    problem = OfflineProblem.from_episodes(episodes, ser(), flow=FiniteHorizon(10))
    recorded = [np.array([e.actions[t] for e in episodes if len(e.actions) > t]) for t in range(10)]
    hazards = np.array([np.mean(actions == QUIT) for actions in recorded])
    return problem, hazards, np.sqrt(0.3 * 0.7 / np.array([actions.size for actions in recorded]))


@pytest.mark.parametrize("beta", [1e-3, 1e-2, 1e-1, 1.0, 10.0])
@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_chain_without_rewards_keeps_the_quitting_of_the_data(chain, divergence, beta):
    problem, hazards, _ = chain
    solution = solve_dual(problem, beta, DIVERGENCES[divergence]())
    np.testing.assert_allclose(solution.ratio, 1, atol=1e-6)
    acting = np.unique(problem.node)
    assert problem.time[acting].tolist() == list(range(10))
    np.testing.assert_allclose(solution.policy_table()[acting, QUIT], hazards, atol=1e-6)


def test_chain_recovers_the_hazard_of_the_process(chain):
    problem, _, error = chain
    table = solve_dual(problem, 0.1).policy_table()[np.unique(problem.node)]
    assert np.all(np.abs(table[:, QUIT] - 0.3) <= 4 * error)
    assert np.all(np.abs(table[:, GO_ON] - 0.7) <= 4 * error)


def test_chain_has_the_mass_that_survives_its_hazards(chain):
    """The mass at t is what the quitting before it leaves of 1, whoever was cut off."""
    problem, hazards, _ = chain
    mass = np.bincount(problem.time[problem.node], problem.mass)
    np.testing.assert_allclose(mass, np.cumprod(np.append(1, 1 - hazards[:-1])), rtol=1e-9)


def test_chain_program_agrees(chain):
    problem, _, _ = chain
    np.testing.assert_allclose(solve_program(problem, 1.0).ratio, 1, atol=1e-5)


# The switch that leaves the accrued reward out, and the limits of β.


def every_course(seed: int, horizon: int = 4) -> Episodes:
    """A deterministic problem's episodes under every sequence of two actions, once each."""
    rng = np.random.default_rng(seed)
    following, reward = rng.integers(0, 3, (3, 2)), rng.integers(-1, 3, (3, 2, 2)).astype(np.float64)
    episodes = []
    for actions in itertools.product(range(2), repeat=horizon):
        states = [0]
        for action in actions:
            states.append(int(following[states[-1], action]))
        rewards = reward[states[:-1], actions]
        episodes.append(Episode(np.array(states)[:, None], np.array(actions), rewards, False, True))
    return Episodes.from_list(episodes)


@pytest.mark.parametrize("beta", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("instance", [Instance(0), Instance(1, ends=True)], ids=["full-length", "ending"])
def test_without_augmentation_nodes_are_states_and_times(instance, beta):
    episodes = instance.episodes()
    problem = OfflineProblem.from_episodes(episodes, ser(), augmented=False)
    expected = regularised_value(episodes, CASES["ser"], beta, augmented=False)
    assert solve_dual(problem, beta).value == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("beta", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("objective", [ser(), esr()], ids=["ser", "esr"])
def test_augmentation_changes_nothing_where_the_state_shows_the_accrued_reward(objective, beta):
    episodes = every_course(0)
    seen = Episodes.from_list(
        episode._replace(
            observations=np.hstack(
                [episode.observations, np.vstack([np.zeros(2), np.cumsum(episode.rewards, axis=0)])]
            )
        )
        for episode in episodes
    )
    values = [
        solve_dual(OfflineProblem.from_episodes(data, objective, augmented=augmented), beta).value
        for data, augmented in ((seen, False), (seen, True), (episodes, True))
    ]
    assert values == pytest.approx([values[0]] * 3, abs=1e-9)


@pytest.mark.parametrize("seed", range(2))
def test_for_linear_utility_augmentation_costs_only_regularisation(seed):
    """Finer nodes pay more divergence for the same policy, so the values meet as β falls to 0."""
    episodes = every_course(seed)
    fine, coarse = (
        OfflineProblem.from_episodes(episodes, ser(), augmented=augmented) for augmented in (True, False)
    )
    betas = (1.0, 1e-2, 1e-5)
    costs = [solve_dual(coarse, beta).value - solve_dual(fine, beta).value for beta in betas]
    assert min(costs) >= -1e-8
    assert costs[0] > 1e-3
    assert costs[-1] <= 1e-3


@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize("name", ["esr", "bsr-0.5", "ser"])
def test_large_beta_clones_the_data(name, divergence):
    episodes, objective = Instance(1, ends=True).episodes(), CASES[name].objective
    problem = OfflineProblem.from_episodes(episodes, objective)
    far, near = (solve_dual(problem, beta, DIVERGENCES[divergence]()) for beta in (1e6, 1.0))
    np.testing.assert_allclose(far.ratio, 1, atol=1e-4)
    assert np.abs(near.ratio - 1).max() > 1e-2
    scored = CASES[name].utility(episodes.returns).mean(axis=0)
    np.testing.assert_allclose(far.slack, scored, atol=1e-4)


@pytest.mark.parametrize("name", ["esr", "bsr-0.5", "ser", "saturating"])
@pytest.mark.parametrize("instance", [Instance(0), Instance(1, ends=True)], ids=["full-length", "ending"])
def test_value_rises_to_the_unregularised_optimum_as_beta_falls(instance, name):
    episodes, case = instance.episodes(), CASES[name]
    problem = OfflineProblem.from_episodes(episodes, case.objective)
    values = np.array([solve_dual(problem, beta).value for beta in (10.0, 1.0, 0.1, 1e-2, 1e-3, 1e-5)])
    assert np.all(np.diff(values) > 0)
    best = regularised_value(episodes, case, 0)
    assert values[-1] < best
    assert values[-1] == pytest.approx(best, abs=1e-3)


@pytest.mark.parametrize("name", ["esr", "bsr-0.5", "ser"])
@pytest.mark.parametrize("instance", [Instance(0), Instance(1, ends=True)], ids=["full-length", "ending"])
def test_policy_beats_the_behaviour_and_not_the_optimum(instance, name):
    objective, space = CASES[name].objective, enumerate_space(instance.momdp())
    behaviour = uniform_policy(space)
    problem = OfflineProblem.from_episodes(behaviour.rollout(300, seed=0), objective)
    score = solve_dual(problem, 0.01).policy(space).outcomes().score(objective)
    data, best = behaviour.outcomes().score(objective), solve(space, objective).value
    assert data + 0.5 * (best - data) < score <= best + 1e-9
