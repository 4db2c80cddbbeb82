"""A population is its members, trained together: no member feels the others."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.training import TINY, leaves, parameters, tiny_episodes, tiny_run

from aetdice import bsr, lsr
from aetdice.algorithms import ALGORITHMS
from aetdice.algorithms.diagnostics import diagnose_ratios
from aetdice.algorithms.refit import refit
from aetdice.algorithms.sampling import SampleWeights, cumulative_shares
from aetdice.data import augment, transform_episodes
from aetdice.data.device import to_device
from aetdice.data.transforms import Scaling
from aetdice.learning.population import (
    draw_policy,
    member,
    stack,
    start_policies,
    start_values,
    train_policies,
    train_values,
)
from aetdice.networks import Categorical, Encoder
from aetdice.objectives import Identity

CHOICES = [(0.3, 0.1, 0), (0.3, 0.4, 1), (0.7, 0.1, 1), (0.7, 0.4, 0)]
"""α, β and seed of each member."""
LEARNER = ALGORITHMS["aetdice"](3, TINY)


@pytest.fixture(scope="module")
def data():
    return to_device(augment(tiny_episodes(), Identity(), 3))


@pytest.fixture(scope="module")
def encoder():
    return Encoder((3,), 3, True, True, np.ones(1), np.ones(1), np.full(2, 2.0), 0, 8)


def duals(encoder, data, choices):
    hypers = stack([LEARNER.hyper(bsr(alpha), 1e-3, beta=beta) for alpha, beta, _ in choices])
    seeds = jnp.asarray([seed for _, _, seed in choices])
    states = start_values(LEARNER, encoder, hypers, seeds, data)
    for chunk in jnp.split(jnp.arange(100), 4):
        states = train_values(states, LEARNER, hypers, seeds, data, chunk)
    return states, hypers


@pytest.fixture(scope="module")
def together(encoder, data):
    return duals(encoder, data, CHOICES)


def test_duals_trained_together_equal_duals_trained_alone(encoder, data, together):
    for index, choice in enumerate(CHOICES):
        alone, _ = duals(encoder, data, [choice])
        for one, other in zip(leaves(member(alone, 0)), leaves(member(together[0], index)), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_coarse_moments_are_kept_from_chunk_to_chunk(encoder, data):
    """bfloat16 keeps first moments coarse inside a chunk; states outside stay what checkpoints hold."""
    hypers, seeds = stack([LEARNER.hyper(bsr(0.3), 1e-3, beta=0.1)]), jnp.zeros(1, int)
    steps = jnp.arange(40)

    def trained(*chunks):
        states = start_values(LEARNER, encoder, hypers, seeds, data)
        for chunk in chunks:
            states = train_values(states, LEARNER, hypers, seeds, data, chunk)
        return states

    with jax.default_matmul_precision("bfloat16"):
        whole, rest = trained(steps), trained(steps[:20], steps[20:])
    exact = trained(steps)
    for one, other, fine in zip(leaves(whole), leaves(rest), leaves(exact), strict=True):
        assert one.dtype == fine.dtype
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(one, fine, rtol=0.1, atol=0.02)
    first, second = (leaves(moments) for moments in (whole.moments.first, whole.moments.second))
    assert all((each == each.astype(jnp.bfloat16)).all() for each in first)
    assert not all((each == each.astype(jnp.bfloat16)).all() for each in second)


def test_members_differ_from_each_other(together):
    slacks = np.asarray(together[0].slack)
    apart = np.abs(slacks[:, None] - slacks[None]).max(axis=2)
    assert apart[~np.eye(len(CHOICES), dtype=bool)].min() > 1e-4


def test_policies_trained_together_equal_policies_trained_alone(encoder, data):
    weights = np.random.default_rng(0).random((2, data.steps.count))
    weights = [SampleWeights(jnp.asarray(cumulative_shares(row))) for row in weights]
    rates, seeds = jnp.asarray([1e-3, 3e-3]), jnp.asarray([0, 5])

    def cloned(rows):
        states = start_policies(encoder, Categorical(2), (8,), seeds[rows])
        for chunk in jnp.split(jnp.arange(100), 4):
            shown = stack(
                [draw_policy(weights[row], seeds[row], chunk, TINY.extraction.batch) for row in rows]
            )
            states = train_policies(states, shown, rates[rows], seeds[rows], data, chunk, TINY.extraction)
        return states

    together = cloned(jnp.arange(2))
    for index in range(2):
        alone = member(cloned(jnp.asarray([index])), 0)
        for one, other in zip(leaves(alone), leaves(member(together, index)), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_equal_arguments_give_equal_bits_and_another_seed_does_not():
    one, again, other = (parameters(tiny_run(seed=seed)) for seed in (0, 0, 1))
    assert all(map(np.array_equal, one, again))
    assert not all(map(np.array_equal, one, other))


def test_a_run_keeps_the_facts_of_its_data():
    """The encoder's constants are no weights: training leaves them alone."""
    run, data = tiny_run(), tiny_episodes()
    reach = np.max([np.abs(np.cumsum(episode.rewards, axis=0)).max(axis=0) for episode in data], axis=0)
    for acting in (run.policy, run.twin):
        np.testing.assert_allclose(acting.network.encoder.accrued_range, np.log1p(reach), rtol=1e-6)


@pytest.fixture(scope="module", params=[False, True], ids=["constants", "layer"])
def refitted(request, together, data):
    states, hypers = together
    rough, hyper = member(states, 0), member(hypers, 0)
    smooth = refit(rough, hyper, data, LEARNER.setting, layer=request.param)
    return rough, smooth, *(diagnose_ratios(state, hyper, data, LEARNER.setting) for state in (rough, smooth))


def test_refit_lowers_the_dual(refitted):
    _, _, before, after = refitted
    assert float(after.dual_value) < float(before.dual_value)


def test_refit_conserves_mass_and_balances_the_flow(refitted):
    _, _, before, after = refitted
    assert float(after.mass_violation) < 1e-2 < float(before.mass_violation)
    assert float(after.flow_violation) < float(before.flow_violation)


def test_constants_and_scale_keep_the_networks_direction(together, data):
    states, hypers = together
    rough = member(states, 0)
    smooth = refit(rough, member(hypers, 0), data, LEARNER.setting, layer=False)
    old, new = (np.asarray(state.average.net.weights[-1]) for state in (rough, smooth))
    assert np.corrcoef(old.ravel(), new.ravel())[0, 1] == pytest.approx(1, abs=1e-5)


def test_refit_makes_the_slack_what_the_ratios_attain(refitted, data):
    _, smooth, _, after = refitted
    objective = bsr(CHOICES[0][0])
    gain = float(objective.aggregation(smooth.slack))
    assert float(after.claimed_value) == pytest.approx(gain, abs=1e-3)


def test_refit_leaves_a_network_of_the_same_form(refitted):
    rough, smooth, _, _ = refitted
    for old, new in zip(leaves(rough.average), leaves(smooth.average), strict=True):
        assert (old.shape, old.dtype) == (new.shape, new.dtype)
        assert np.all(np.isfinite(new))
    value = smooth.average(jnp.zeros(1, jnp.int32), jnp.zeros(2), jnp.zeros((), jnp.int32))
    assert value.shape == ()


@pytest.mark.slow
def test_objectives_of_one_short_name_are_selected_apart():
    """Weights do not stand in the short name of a weighted sum."""
    sums = [lsr([1.0, 0.0]), lsr([0.0, 1.0])]
    run = tiny_run(objective=sums, beta=[0.1, 1.0], seed=[0, 1])
    assert [len(run.seeds_of(selection)) for selection in run.selections] == [2, 2]
    chosen = [run.members[selection.chosen].objective.name for selection in run.selections]
    assert chosen == [objective.name for objective in sums]


def test_training_with_a_transform_is_training_on_transformed_data():
    scaling = Scaling((2.0, 0.5))
    inside = tiny_run(transform=scaling)
    before = tiny_run(data=transform_episodes(tiny_episodes(), scaling))
    for one, other in zip(parameters(inside), parameters(before), strict=True):
        np.testing.assert_array_equal(one, other)
    assert inside.policy.transform == inside.twin.transform == scaling
    assert before.policy.transform is None


@pytest.mark.slow
def test_values_see_their_own_fourier_features_and_policies_their_own_batch():
    usual = tiny_run()
    changes = {"network.value_fourier": 3, "extraction.batch": 32}
    features, batch = (tiny_run(config=TINY.adapted({name: value})) for name, value in changes.items())
    for other in (features, batch):
        assert other.policy.network.encoder.fourier == TINY.network.fourier
        same = [np.array_equal(a, b) for a, b in zip(parameters(usual), parameters(other), strict=True)]
        assert not all(same)
    for one, other in zip(leaves(usual.twin.network), leaves(features.twin.network), strict=True):
        np.testing.assert_array_equal(one, other)
