"""The neural learner against exact answers, on problems small enough to have them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.problems import uniform_episodes
from support.training import deterministic_momdp

from aetdice import (
    Episode,
    Episodes,
    OfflineProblem,
    TrainingConfig,
    bsr,
    enumerate_space,
    esr,
    ser,
    solve_dual,
    train,
)
from aetdice.algorithms.dual import DualSetting, step_residuals
from aetdice.config import DualConfig
from aetdice.data import augment
from aetdice.data.device import to_device
from aetdice.dice import FiniteHorizon, ratio
from aetdice.evaluation.tabulation import tabulated
from aetdice.exact import uniform_policy
from aetdice.networks import Nu, PolicyNetwork
from aetdice.objectives import DIVERGENCES, Identity

HORIZON, EPISODES, BETA = 4, 200, 0.1


class TableNu(Nu):
    """The ν of a table, in the place of the network."""

    keys: jax.Array
    values: jax.Array

    def __init__(self, problem, nu):
        self.encoder, self.net, self.offsets = None, None, jnp.zeros(HORIZON)
        self.keys = jnp.asarray(np.column_stack([problem.observation, problem.accrued, problem.time]))
        self.keys = self.keys.astype(jnp.float32)
        self.values = jnp.asarray(nu, jnp.float32)

    def __call__(self, observation, accrued, time):
        sought = jnp.concatenate([observation.astype(jnp.float32), accrued, time.astype(jnp.float32)[None]])
        return self.values[jnp.argmin(jnp.sum(jnp.abs(self.keys - sought[None]), axis=1))]


@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize("objective", [esr(), bsr(0.5), ser()], ids=["esr", "bsr", "ser"])
def test_exact_nu_in_the_learners_place_gives_the_exact_ratios(objective, divergence):
    episodes = uniform_episodes(deterministic_momdp(0), 60, seed=1)
    problem = OfflineProblem.from_episodes(episodes, objective)
    phi = DIVERGENCES[divergence]()
    solution = solve_dual(problem, 0.3, phi)
    steps = to_device(augment(episodes, Identity(), HORIZON)).steps.everything()
    table, setting = TableNu(problem, solution.nu), DualSetting(FiniteHorizon(HORIZON), phi, DualConfig())
    mu = jnp.asarray(solution.multiplier, jnp.float32)
    found = np.asarray(ratio(step_residuals(table, objective, steps, mu, setting), 0.3, phi))
    keys = np.column_stack([problem.observation, problem.accrued, problem.time])[problem.node]
    pairs = {(*key, action): i for i, (key, action) in enumerate(zip(keys, problem.action, strict=True))}
    rows = np.column_stack([steps.observation, steps.accrued, steps.time, steps.action])
    expected = solution.ratio[[pairs[tuple(row)] for row in rows.astype(float)]]
    assert expected.max() > 1.2
    np.testing.assert_allclose(found, expected, atol=1e-4, rtol=1e-4)


PROBE = TrainingConfig().adapted(
    {
        "network.hidden": (64,),
        "dual.batch": 128,
        "dual.steps": 1000,
        "dual.averaging": 0.99,
        "extraction.batch": 128,
        "extraction.steps": 1000,
        "trainer.chunk": 1000,
        "trainer.holdout": 0.0,
    }
)


@pytest.fixture(scope="module", params=[0, pytest.param(3, marks=pytest.mark.slow)])
def probe(request):
    """A learner for ESR and one for SER, and the space they act in."""
    momdp = deterministic_momdp(request.param)
    episodes = uniform_episodes(momdp, EPISODES, request.param)
    settings = {"beta": BETA, "learning_rate": 3e-3, "config": PROBE, "progress": False}
    run = train(episodes, [bsr(0.0), bsr(1.0)], **settings)
    return enumerate_space(momdp), episodes, run


@pytest.mark.parametrize(("index", "objective"), [(0, esr()), (1, ser())], ids=["esr", "ser"])
def test_learner_finds_the_exact_regularised_optimum(probe, index, objective):
    space, episodes, run = probe
    member, exact = run.members[index], solve_dual(OfflineProblem.from_episodes(episodes, objective), BETA)
    assert member.diagnostics["dual_value"] == pytest.approx(exact.value, rel=0.02, abs=0.02)
    low, high = member.diagnostics["mass_range"]
    assert 0.95 <= low <= high <= 1.05
    best = exact.policy(space).outcomes().score(objective)
    data = uniform_policy(space).outcomes().score(objective)
    score = tabulated(member.policy.network, space).outcomes().score(objective)
    assert best - data > 0.2
    assert score == pytest.approx(best, abs=0.05 * (best - data) + 0.02)
    twin = tabulated(member.twin.network, space).outcomes().score(objective)
    assert abs(twin - data) < 0.3 * (best - data)


# One step, one action in [-1, 1]: each objective has its own peak, so fairness needs both.


def peaks(action):
    """Rewards of actions: 10 at ±0.7, next to nothing elsewhere."""
    return 10 * np.exp(-(((np.asarray(action) - np.array([0.7, -0.7])) / 0.2) ** 2))


@pytest.fixture(scope="module")
def torn():
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (1000, 1, 1))
    return Episodes.from_list(Episode(np.zeros((2, 1)), a, peaks(a), True, False) for a in actions)


def sampled_actions(policy: PolicyNetwork, count: int = 4000):
    return np.asarray(every_sample(policy, jax.random.split(jax.random.key(0), count)))


@eqx.filter_jit
def every_sample(policy: PolicyNetwork, keys):
    where = (jnp.zeros(1), jnp.zeros(2), jnp.asarray(0))
    return jax.vmap(lambda key: policy.sample(*where, key))(keys)


@pytest.fixture(scope="module")
def mixtures(torn):
    """The actions of a five-component policy and of a single Gaussian."""
    found = {}
    for components in (5, 1):
        settings = {"network.hidden": (16,), "network.components": components, "dual.steps": 300}
        config = PROBE.adapted({**settings, "dual.averaging": 0.999, "extraction.steps": 1000})
        found[components] = train(torn, ser(), beta=0.5, learning_rate=3e-3, config=config, progress=False)
    return found


@pytest.mark.slow
def test_mixture_attains_what_one_gaussian_cannot(mixtures):
    scores = {
        components: float(ser()(jnp.asarray(peaks(sampled_actions(run.policy.network)), jnp.float32)))
        for components, run in mixtures.items()
    }
    optimum = 2 * np.log(5)
    assert scores[5] > 0.75 * optimum
    assert scores[1] < 0.5 * optimum


@pytest.mark.slow
def test_mixture_is_half_and_half(mixtures):
    actions = sampled_actions(mixtures[5].policy.network)
    assert np.mean(actions > 0) == pytest.approx(0.5, abs=0.07)
    assert np.mean(np.abs(np.abs(actions) - 0.7) < 0.25) > 0.9


@pytest.mark.slow
def test_actions_stay_within_the_range_of_the_data(mixtures, torn):
    for run in mixtures.values():
        head, actions = run.twin.network.head, sampled_actions(run.twin.network)
        assert head.low == pytest.approx(torn.actions.min(axis=0))
        assert head.high == pytest.approx(torn.actions.max(axis=0))
        assert torn.actions.min() - 1e-6 <= actions.min()
        assert actions.max() <= torn.actions.max() + 1e-6
