"""OptiDICE and FairDICE against the exact optima of their discounted problems."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.problems import uniform_episodes
from support.roundabout import PLACES, discounted_returns, roundabout
from support.training import deterministic_momdp

from aetdice import Episodes, OfflineProblem, TrainingConfig, lsr, ser, solve_dual, solve_program, train
from aetdice.algorithms import ALGORITHMS
from aetdice.algorithms.dual import DualSetting, step_residuals
from aetdice.config import DualConfig
from aetdice.dice import Discounted, ratio
from aetdice.learning.inputs import onto_device
from aetdice.networks import Nu
from aetdice.objectives import DIVERGENCES

GAMMA, BETA = 0.9, 0.3
"""β is below where annealing starts, 0.1 / (1 - γ)."""
CASES = {"optidice": lsr((1.0, 0.5)), "fairdice": ser()}
PROBE = TrainingConfig().adapted(
    {
        "network.hidden": (32,),
        "dual.batch": 128,
        "dual.steps": 600,
        "dual.averaging": 0.99,
        "dual.gamma": GAMMA,
        "dual.refit": "layer",
        "extraction.batch": 128,
        "extraction.steps": 1000,
        "trainer.chunk": 1000,
        "trainer.holdout": 0.0,
    }
)
DATASETS = {
    "random-0": uniform_episodes(deterministic_momdp(0), 250, seed=0),
    "random-3": uniform_episodes(deterministic_momdp(3), 250, seed=1),
    "leaving-ends": roundabout(0),
    "nothing-ends": roundabout(0, leaving=False),
}
"""Deterministic, so that one sample of what follows is all there is to know; of equal shapes."""


def exact_problem(name: str, data: Episodes) -> OfflineProblem:
    return OfflineProblem.from_episodes(data, CASES[name], flow=Discounted(GAMMA))


def table_of(policy, places: int) -> np.ndarray:
    """π(a|s) of every place."""
    return np.asarray(jax.nn.softmax(every_output(policy, jnp.arange(places)[:, None]), axis=1))


@eqx.filter_jit
def every_output(policy, states):
    return jax.vmap(lambda s: policy.outputs(s, jnp.zeros(2), jnp.zeros((), int)))(states)


QUICK = (("optidice", "leaving-ends"), ("fairdice", "nothing-ends"))
"""One dataset for each algorithm; the others are trained by `make test-all`."""
PROBES = [
    pytest.param((name, data), id=f"{name}-{data}", marks=() if (name, data) in QUICK else pytest.mark.slow)
    for name in CASES
    for data in DATASETS
]


@pytest.fixture(scope="module", params=PROBES)
def probe(request):
    name, data = request.param[0], DATASETS[request.param[1]]
    settings = {"beta": BETA, "learning_rate": 3e-3, "horizon": 5, "config": PROBE, "progress": False}
    return name, request.param[1], train(data, CASES[name], algorithm=name, **settings)


def test_learner_finds_the_exact_discounted_optimum(probe):
    name, data, run = probe
    problem, found = exact_problem(name, DATASETS[data]), run.members[0].diagnostics
    for exact in (solve_dual(problem, BETA), solve_program(problem, BETA)):
        assert found["dual_value"] == pytest.approx(exact.value, rel=0.02)
        np.testing.assert_allclose(found["slack"], exact.slack, rtol=0.02)
        gain = float(CASES[name].aggregation(jnp.asarray(exact.slack, jnp.float32)))
        assert found["claimed_value"] == pytest.approx(gain, rel=0.02)
    assert found["mass_violation"] < 0.02
    assert found["flow_violation"] < 0.05


def test_policy_is_the_exact_solutions(probe):
    name, data, run = probe
    exact = solve_dual(exact_problem(name, DATASETS[data]), BETA)
    expected, places = exact.policy_table(), exact.problem.observation[:, 0]
    found = table_of(run.policy.network, int(places.max()) + 1)[places]
    reached = np.bincount(exact.problem.node, exact.ratio * exact.problem.mass) > 0.02
    np.testing.assert_allclose(found[reached], expected[reached], atol=0.06)
    twin = table_of(run.twin.network, int(places.max()) + 1)[places]
    assert np.abs(twin - expected)[reached].max() > 0.15


@pytest.mark.parametrize("name", CASES)
def test_how_an_episode_ends_changes_what_is_best(name):
    """So that the probes above would miss their optima if an end were taken for another."""
    labels = ({}, {"leaving": False}, {"limit": True})
    right, *wrong = (solve_dual(exact_problem(name, roundabout(0, **each)), BETA).value for each in labels)
    assert min(abs(value / right - 1) for value in wrong) > 0.05


def test_slack_is_in_units_of_return():
    """k is the discounted return of the policy itself, thresholds of G and all."""
    for leaving, data in ((True, "leaving-ends"), (False, "nothing-ends")):
        exact = solve_dual(exact_problem("fairdice", DATASETS[data]), BETA)
        assert exact.problem.observation[:, 0].tolist() == list(range(PLACES))
        attained = discounted_returns(exact.policy_table(), exact.problem.initial, GAMMA, leaving=leaving)
        np.testing.assert_allclose(exact.slack, attained, rtol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_only_termination_ends_a_discounted_flow(name):
    """ν' = 0 after termination; a time limit stops the recording, not the process."""
    data = DATASETS["leaving-ends"]
    steps = onto_device(data, 5, ALGORITHMS[name](5, PROBE)).steps.everything()
    last = data.starts + data.lengths - 1
    assert np.any(data.terminated)
    assert np.any(data.lengths[~data.terminated] == 5)
    assert not np.any(np.asarray(steps.bootstraps)[last[data.terminated]])
    assert np.all(np.delete(np.asarray(steps.bootstraps), last[data.terminated]))


class TableNu(Nu):
    """The ν of a table, in the place of the network."""

    values: jax.Array

    def __init__(self, problem, nu):
        self.encoder, self.net, self.offsets = None, None, jnp.zeros(1)
        assert problem.observation[:, 0].tolist() == list(range(problem.nodes))
        self.values = jnp.asarray(nu, jnp.float32)

    def __call__(self, observation, accrued, time):
        return self.values[observation[0]]


@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("data", ["random-0", "leaving-ends", "nothing-ends"])
def test_exact_nu_in_the_learners_place_gives_the_exact_ratios(name, data, divergence):
    problem, phi = exact_problem(name, DATASETS[data]), DIVERGENCES[divergence]()
    exact = solve_dual(problem, BETA, phi)
    steps = onto_device(DATASETS[data], 5, ALGORITHMS[name](5, PROBE)).steps.everything()
    setting, mu = (
        DualSetting(Discounted(GAMMA), phi, DualConfig()),
        jnp.asarray(exact.multiplier, jnp.float32),
    )
    residuals = step_residuals(TableNu(problem, exact.nu), CASES[name], steps, mu, setting)
    pairs = {pair: i for i, pair in enumerate(zip(problem.node, problem.action, strict=True))}
    rows = zip(np.asarray(steps.observation)[:, 0], np.asarray(steps.action), strict=True)
    expected = exact.ratio[[pairs[row] for row in rows]]
    assert expected.max() > 1.2
    np.testing.assert_allclose(ratio(residuals, BETA, phi), expected, atol=1e-4, rtol=1e-4)
