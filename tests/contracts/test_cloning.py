"""Drawing steps by their weight, and the weights that the ratios give them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from support.training import TINY, leaves, parameters, tiny_episodes, tiny_run

from aetdice import InputError, TrainingConfig, augment
from aetdice.algorithms import Weighing
from aetdice.algorithms.cloning import init_cloning, prepare_cloning, update_cloning
from aetdice.algorithms.optimiser import pace
from aetdice.algorithms.sampling import SampleWeights, cumulative_shares, rows_of_bits, sample_bits
from aetdice.data.device import to_device
from aetdice.dice import FiniteHorizon
from aetdice.envs import FairTaxi
from aetdice.envs.fair_taxi.collection import collect_fair_taxi
from aetdice.learning.extraction import behaviour_shares, sample_weights_for
from aetdice.networks import Categorical, Encoder, PolicyNetwork
from aetdice.objectives import Identity

KEY = jax.random.key(0)


@eqx.filter_jit
def on_device(weights, bits):
    return weights.drawn_by(bits).rows


def rows_of(weights, key, count):
    """Drawn on the device, as on the host."""
    cdf, bits = cumulative_shares(weights), sample_bits(key, count)
    rows = on_device(SampleWeights(jax.device_put(cdf)), bits)
    np.testing.assert_array_equal(rows_of_bits(cdf, np.asarray(bits)), rows)
    return rows


def drawn(weights, count=200_000, key=KEY):
    """How often each row comes up."""
    rows = rows_of(np.asarray(weights, float), key, count)
    return np.bincount(rows, minlength=len(weights))


@pytest.mark.parametrize("seed", range(3))
def test_rows_are_drawn_in_proportion_to_their_weight(seed):
    weights = np.random.default_rng(seed).gamma(0.5, size=40) + 1e-3
    counts = drawn(weights, key=jax.random.key(seed))
    expected = weights / weights.sum() * counts.sum()
    assert scipy.stats.chisquare(counts, expected).pvalue > 1e-4


def test_weights_of_very_different_size_keep_their_shares():
    counts = drawn([1e-12, 1e6, 1e-12, 1e3, 1e6])
    assert counts[[0, 2]].sum() == 0
    assert abs(counts[3] - 100) < 50  # a share of 1/2001 of 200 000, five sigma
    assert abs(counts[1] - counts[4]) < 5 * np.sqrt(200_000)


def test_half_a_million_rows_are_drawn_evenly():
    """Cumulative sums in float32 would lose most of them."""
    rows = np.asarray(rows_of(np.ones(500_000), KEY, 500_000))
    assert len(np.unique(rows)) / 500_000 == pytest.approx(1 - np.exp(-1), abs=5e-3)
    assert rows.mean() == pytest.approx(250_000, rel=5e-3)


@given(st.lists(st.sampled_from([0.0, 0.0, 1e-6, 1.0, 7.0]), min_size=1, max_size=8).filter(any))
def test_row_without_weight_is_never_drawn(weights):
    assert not np.any(drawn(weights, 2000)[np.asarray(weights) == 0])


@pytest.mark.parametrize("bits", [0, 2**32 - 1])
def test_not_even_the_outermost_numbers_hit_a_row_without_weight(monkeypatch, bits):
    monkeypatch.setattr(jax.random, "bits", lambda key, shape, dtype: jnp.full(shape, bits, dtype))
    assert set(np.flatnonzero(drawn([0.0, 1.0, 0.0, 2.0, 0.0], 10))) <= {1, 3}


@pytest.mark.parametrize("weights", [[0.0, 0.0], [1.0, np.nan], [np.inf, 1.0], [1.0, -2.0]])
def test_improper_weights_are_refused(weights):
    with pytest.raises(InputError, match="weights"):
        cumulative_shares(np.array(weights))


# From ratios to sample weights.

DATA = to_device(augment(tiny_episodes(), Identity(), 3))
RATIOS = np.random.default_rng(0).gamma(1.0, size=DATA.steps.count)


def sample_weights(ratios, floor=0.01, weighted_loss=False, early=0.0):
    mass = DATA.steps.weight * jnp.asarray(ratios, jnp.float32)
    balanced = FiniteHorizon(3).balance(mass, DATA.steps.time, DATA.steps.everything().terminates)
    settings = {
        "extraction.floor": floor,
        "extraction.early_oversampling": early,
        "ablation.weighted_loss": weighted_loss,
    }
    config, behaviour = TrainingConfig().adapted(settings), behaviour_shares(DATA)
    return [sample_weights_for(each, behaviour, DATA, config) for each in (Weighing(balanced, {}), None)]


def shares(weights, policy=0):
    """How often each step is drawn for a policy."""
    return np.diff(np.asarray(weights[policy].cdf, np.int64), prepend=0) / 2**32


def test_weights_in_the_loss_teach_what_drawing_teaches():
    """Share drawn × weight in the loss is the same product, however it is split."""
    drawn, weighted = sample_weights(RATIOS), sample_weights(RATIOS, weighted_loss=True)
    assert drawn[0].loss_weights is None
    for policy in range(2):
        taught = shares(weighted, policy) * np.asarray(weighted[policy].loss_weights)
        np.testing.assert_allclose(taught, shares(drawn, policy), atol=1e-6)


def test_the_twin_is_taught_the_data_as_it_is():
    np.testing.assert_allclose(shares(sample_weights(RATIOS), 1), 1 / DATA.steps.count, atol=1e-8)


@pytest.mark.parametrize("early", [0.3, 1.0])
def test_early_oversampling_is_a_factor_of_each_time_step_that_favours_the_first(early):
    for policy in range(2):
        plain, more = (shares(sample_weights(RATIOS, early=share), policy) for share in (0.0, early))
        factors = [(more / plain)[np.asarray(DATA.steps.time) == time] for time in range(3)]
        for factor in factors:
            np.testing.assert_allclose(factor, factor[0], rtol=1e-3, atol=1e-6)
        assert factors[0][0] > 1 > factors[1][0]
        first = more[np.asarray(DATA.steps.time) == 0].sum() / more.sum()
        assert first == pytest.approx(early + (1 - early) / 3, abs=1e-3)


def test_ratios_that_are_all_zero_teach_nothing():
    with pytest.raises(InputError, match="every ratio is zero"):
        sample_weights(np.zeros_like(RATIOS))


def test_extraction_ignores_a_factor_of_each_time_step():
    """π(a|s̃) cannot depend on it, so neither do the sample weights."""
    factor = np.array([0.1, 1.0, 30.0])[np.asarray(DATA.steps.time)]
    one, other = (np.cumsum(shares(sample_weights(ratios))) for ratios in (RATIOS, factor * RATIOS))
    assert np.abs(one - other).max() < 1e-6


@pytest.mark.parametrize("floor", [0.0, 0.01, 1.0])
def test_every_time_step_is_taught_as_often_as_it_was_recorded(floor):
    by_time = np.bincount(DATA.steps.time, shares(sample_weights(RATIOS, floor)))
    np.testing.assert_allclose(by_time, np.full(3, 1 / 3), atol=1e-6)


def test_floor_is_the_share_of_the_behaviour():
    ratios = np.where(np.arange(RATIOS.size) < 30, 1.0, 0.0)
    for floor in (0.0, 0.2):
        found = shares(sample_weights(ratios, floor))
        assert found[30:].sum() == pytest.approx(floor * 120 / 150, abs=1e-6)


# The dataset of Fair-Taxi.

TAXI = FairTaxi(size=3, origins=((0, 0), (2, 2)), destinations=((0, 1), (2, 1)), start=(1, 1), horizon=8)


def test_policy_under_dropout_lacks_a_share_of_its_hidden_units():
    data = to_device(augment(tiny_episodes(), Identity(), 3), actions=4)
    encoder = Encoder((3,), 3, True, True, np.zeros(1), np.ones(1), np.ones(2), 0, 8)
    policy = PolicyNetwork(encoder, Categorical(4), (500, 400), KEY)
    policy = eqx.tree_at(lambda p: p.net.weights[2], policy, jnp.ones((400, 4)))
    now, every = pace(jnp.asarray(1e-3), jnp.asarray(0.0)), data.steps.everything()
    batch, again = (
        eqx.filter_jit(prepare_cloning)(policy, every, data.steps.weight, None, now, 0.25, key)
        for key in (KEY, jax.random.key(1))
    )
    for factors, width in zip(batch.kept, (500, 400), strict=True):
        assert factors.shape == (width,)
        gone = np.asarray(factors) == 0
        assert gone.mean() == pytest.approx(0.25, abs=0.1)
        np.testing.assert_allclose(factors[~gone], 1 / 0.75, rtol=1e-6)
    assert not np.array_equal(batch.kept[0], again.kept[0])
    after = eqx.filter_jit(update_cloning)(init_cloning(policy), batch).policy.net.weights
    for before, trained, factors in zip(policy.net.weights[1:], after[1:], batch.kept, strict=True):
        unmoved = np.all(np.asarray(before) == np.asarray(trained), axis=1)
        np.testing.assert_array_equal(unmoved, np.asarray(factors) == 0)


@pytest.fixture(scope="module")
def usual():
    """What training with the tiny configuration learns."""
    return parameters(tiny_run())


def learned(settings):
    return parameters(tiny_run(config=TINY.adapted(settings)))


@pytest.mark.trains
def test_dropout_changes_what_is_learned_and_nothing_else_does(usual):
    again, dropped = (learned({"extraction.dropout": share}) for share in (0.0, 0.3))
    assert all(np.array_equal(a, b) for a, b in zip(usual, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(usual, dropped, strict=True))


@pytest.mark.trains
def test_a_policy_that_only_warms_up_is_its_twin():
    [member] = tiny_run(config=TINY.adapted({"extraction.warm_up": 1.0})).members
    for own, other in zip(leaves(member.policy.network), leaves(member.twin.network), strict=True):
        np.testing.assert_array_equal(own, other)


@pytest.mark.trains
def test_warming_up_ends_where_it_should_whatever_the_chunks(usual):
    one, other = (learned({"extraction.warm_up": 0.3, "trainer.chunk": chunk}) for chunk in (25, 10))
    assert not all(np.array_equal(a, b) for a, b in zip(usual, one, strict=True))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_equal_seeds_collect_equal_data_and_others_do_not():
    one, again, other = (collect_fair_taxi(TAXI, 20, seed) for seed in (0, 0, 1))
    for part in ("observations", "actions", "rewards"):
        np.testing.assert_array_equal(getattr(one, part), getattr(again, part))
    assert not np.array_equal(one.actions, other.actions)


def test_three_groups_are_collected():
    taxi = FairTaxi(
        size=3,
        origins=((0, 0), (2, 2), (0, 2)),
        destinations=((0, 1), (2, 1), (1, 2)),
        start=(1, 1),
        horizon=9,
    )
    data = collect_fair_taxi(taxi, 60, 0)
    assert data.objectives == ("group0", "group1", "group2")
    assert np.all(data.returns.max(axis=0) > 0)
    assert np.all(data.lengths == 9)


def test_no_episodes_cannot_be_collected():
    with pytest.raises(InputError, match="at least one episode is needed, not 0"):
        collect_fair_taxi(TAXI, 0)
