"""Data stored once, looked at in blocks, and drawn from ahead: the same steps, sums and chances."""

import errno
import os

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from support.ragged import HORIZON, KEY, ragged, some_nu

from aetdice import Episode, Episodes, InputError, TrainingConfig, bsr, esr
from aetdice.algorithms import refit as refit_module
from aetdice.algorithms.diagnostics import diagnose_ratios
from aetdice.algorithms.dice import aetdice
from aetdice.algorithms.dual import behaviour_utilities
from aetdice.algorithms.iql import esr_iql
from aetdice.algorithms.refit import refit
from aetdice.algorithms.sampling import Courses, SampleWeights, cumulative_shares
from aetdice.config import ExtractionConfig
from aetdice.data import augment, passes
from aetdice.data.device import to_device, with_segments
from aetdice.data.mapping import temporary
from aetdice.data.passes import pass_over
from aetdice.data.segments import augment_segments
from aetdice.learning import draws as draws_module
from aetdice.learning.draws import Draws
from aetdice.learning.population import draw_policy, fit_of_policies, member, start_policies
from aetdice.learning.source import weigh
from aetdice.networks import Categorical
from aetdice.objectives import Identity

# The same steps.


ENDS = st.lists(st.tuples(st.integers(1, HORIZON), st.booleans()), min_size=1, max_size=6)


def recording(ends, discrete, seed):
    """Episodes of any lengths, that terminate, are cut, or last to the horizon."""
    rng, found = np.random.default_rng(seed), []
    for length, end in ends:
        seen = rng.integers(0, 9, (length + 1, 1)) if discrete else rng.normal(size=(length + 1, 3))
        found.append(Episode(seen, rng.integers(0, 3, length), rng.normal(size=(length, 2)), end, not end))
    return Episodes.from_list(found)


@eqx.filter_jit
def taken(recorded, rows):
    return recorded.take(rows)


@eqx.filter_jit
def next_accrued(recorded):
    return recorded.next_accrued


def same_steps(recorded, transitions):
    rows = np.random.default_rng(0).permutation(np.arange(recorded.count).repeat(2))
    found = taken(recorded, rows)
    expected = {
        "observation": transitions.observations,
        "next_observation": transitions.next_observations,
        "accrued": transitions.accrued,
        "next_accrued": transitions.next_accrued,
        "time": transitions.time,
        "action": transitions.actions,
        "terminated": transitions.terminated,
        "bootstraps": transitions.bootstraps,
        "weight": transitions.weights,
    }
    for name, column in expected.items():
        own = np.asarray(getattr(found, name))
        np.testing.assert_array_equal(own, column[rows].astype(own.dtype).reshape(own.shape), err_msg=name)


@given(first=ENDS, second=ENDS, discrete=st.booleans(), n_step=st.integers(1, HORIZON))
def test_each_state_is_stored_once_and_each_step_is_what_it_was(first, second, discrete, n_step):
    episodes = Episodes.joined([recording(first, discrete, 0), recording(second, discrete, 1)])
    transitions = augment(episodes, Identity(), HORIZON)
    data = to_device(transitions, actions=3)
    assert data.steps.observation.shape[0] == data.steps.count + len(episodes)
    same_steps(data.steps, transitions)
    np.testing.assert_array_equal(next_accrued(data.steps), transitions.next_accrued.astype(np.float32))
    censored = episodes.truncated & (episodes.lengths < HORIZON)
    if np.any(~censored | (episodes.lengths >= n_step)):
        segments, of_step = augment_segments(episodes, Identity(), n_step, HORIZON)
        same_steps(with_segments(data, segments, of_step).segmented.steps, segments)


# The same sums, whatever the blocks.


@given(count=st.integers(1, 30), size=st.integers(1, 12))
def test_every_row_counts_once(count, size):
    values = np.random.default_rng(count).normal(size=count).astype(np.float32)

    @jax.jit
    def passed(values):
        return pass_over(
            count,
            lambda rows, counted: (
                (jnp.sum(jnp.where(counted, values[rows], 0)), jnp.sum(counted)),
                2 * values[rows],
            ),
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passes, "BLOCK", size)
        total, columns = passed(values)
    np.testing.assert_allclose(total[0], values.sum(), rtol=1e-5, atol=1e-5)
    assert int(total[1]) == count
    np.testing.assert_allclose(columns, 2 * values, rtol=1e-6)


def in_blocks(monkeypatch, size, compute):
    """What is computed where programs look at so many rows at a time."""
    monkeypatch.setattr(passes, "BLOCK", size)
    jax.clear_caches()
    return jax.tree.leaves(compute())


def rough(state):
    """Some state: nothing about it is right."""
    arrays, rest = eqx.partition(state, eqx.is_inexact_array)
    moved = jax.tree.map(lambda leaf: leaf + 0.3 * jax.random.normal(KEY, leaf.shape), arrays)
    return eqx.combine(moved, rest)


def passes_over_all(algorithm, n_step):
    config = TrainingConfig().adapted({"network.hidden": (8,), "dual.n_step": n_step})
    data = ragged(cut=True, n_step=n_step)
    learner = (aetdice if algorithm == "aetdice" else esr_iql)(HORIZON, config)
    own = {"beta": 0.3} if algorithm == "aetdice" else {"expectile": 0.8, "temperature": 2.0}
    hyper = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), learner.hyper(esr(), 1e-3, **own))
    state = eqx.filter_jit(learner.init)(some_nu().encoder, hyper, data, KEY)
    return weigh(learner, eqx.filter_jit(rough)(state), hyper, data)


@pytest.mark.parametrize(("algorithm", "n_step"), [("aetdice", 1), ("aetdice", 2), ("esr-iql", 1)])
def test_weights_and_metrics_do_not_depend_on_the_blocks(monkeypatch, algorithm, n_step):
    whole, parted = (
        in_blocks(monkeypatch, size, lambda: passes_over_all(algorithm, n_step)) for size in (99, 4)
    )
    assert np.ptp(whole[0]) > 0
    for one, two in zip(whole, parted, strict=True):
        np.testing.assert_allclose(one, two, rtol=2e-5, atol=2e-6)


def test_fits_and_utilities_do_not_depend_on_the_blocks(monkeypatch):
    data, learner = ragged(cut=True), aetdice(HORIZON, TrainingConfig())
    hyper, encoder = learner.hyper(bsr(0.5), 1e-3, beta=0.3), some_nu().encoder

    @eqx.filter_jit
    def compute():
        states = start_policies(encoder, Categorical(3), (8,), jnp.arange(2))
        return fit_of_policies(states, data), behaviour_utilities(hyper, data.steps, learner.setting), states

    whole, parted = (in_blocks(monkeypatch, size, compute) for size in (99, 4))
    for one, two in zip(whole[:2], parted[:2], strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)
    *_, states = compute()
    steps = data.steps.everything()
    for index, fit in enumerate(whole[0]):
        policy = member(states, index).policy
        likelihood = jax.jit(jax.vmap(policy.log_probability))
        each = likelihood(steps.observation, steps.accrued, steps.time, steps.action)
        assert float(fit) == pytest.approx(float(jnp.average(each, weights=steps.weight)), rel=1e-5)


@pytest.mark.parametrize("part", [4])
def test_the_refit_in_parts_is_the_refit_of_all(monkeypatch, part):
    data, learner = ragged(cut=True), aetdice(HORIZON, TrainingConfig().adapted({"network.hidden": (8,)}))
    hyper = learner.hyper(bsr(0.5), 1e-3, beta=0.3)
    state = learner.init(some_nu().encoder, hyper, data, KEY)
    monkeypatch.setattr(refit_module, "SPOOLED", part)
    parted = refit(state, hyper, data, learner.setting, layer=False)
    monkeypatch.undo()
    whole = refit(state, hyper, data, learner.setting, layer=False)
    found = [diagnose_ratios(each, hyper, data, learner.setting) for each in (parted, whole)]
    for one, two in zip(*map(jax.tree.leaves, found), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-4)


# The same draws.

WEIGHTS = np.array([0.0, 3.0, 1.0, 0.0, 5.0, 0.5])
SETTINGS = ExtractionConfig(steps=90, batch=50, warm_up=0.4)


def weights_of(shares):
    return SampleWeights(jnp.asarray(cumulative_shares(np.asarray(shares, float))))


@pytest.mark.parametrize("piece", [1, 350, 1 << 18])
def test_rows_are_those_of_each_update_first_plain_ones(monkeypatch, piece):
    monkeypatch.setattr(draws_module, "PIECE", piece)
    own, plain, seed = weights_of(WEIGHTS), weights_of(np.ones(6)), jnp.asarray(3)
    draws = Draws(2, SETTINGS)
    for weights in (own, plain):
        draws.add(weights.drawn_by, seed, plain.drawn_by)
    found, sample = draws.updates, draws.samples[0]
    for weights, steps in ((plain, np.arange(36)), (own, np.arange(36, 90))):
        for step in steps:
            alone = draw_policy(weights, seed, jnp.asarray([step]), SETTINGS.batch)
            np.testing.assert_array_equal(found.rows[0, step], alone.rows[0])
    assert set(sample.rows) == set(np.flatnonzero(WEIGHTS))
    both = draws.of(35, 38)
    np.testing.assert_array_equal(both.rows, found.rows[:, 35:38])
    np.testing.assert_array_equal(both.rows[0, 0], both.rows[1, 0])  # warming up
    assert not np.array_equal(both.rows[0, 1:], both.rows[1, 1:])


def test_rows_are_drawn_in_proportion_to_their_weights():
    own = weights_of(WEIGHTS)
    draws = Draws(1, ExtractionConfig(steps=400, batch=50))
    draws.add(own.drawn_by, jnp.asarray(0), own.drawn_by)
    for rows in (draws.updates.rows.ravel(), draws.samples[0].rows):
        counts, there = np.bincount(rows, minlength=6), WEIGHTS > 0
        assert not counts[~there].any()
        expected = rows.size * WEIGHTS[there] / WEIGHTS.sum()
        assert scipy.stats.chisquare(counts[there], expected).pvalue > 1e-4


def test_counts_and_courses_are_those_of_the_rows():
    factors, kinds = jnp.arange(6.0), jnp.asarray([0, 1, 2, 0, 1, 2], jnp.uint8)
    weights = weights_of(np.ones(6))
    weights = weights._replace(loss_weights=factors, courses=Courses(kinds, jnp.ones(3) / 3))
    draws = Draws(1, SETTINGS)
    draws.add(weights.drawn_by, jnp.asarray(0), weights.drawn_by)
    found = draws.updates
    np.testing.assert_array_equal(found.counts, np.asarray(factors)[found.rows])
    np.testing.assert_array_equal(found.courses, np.asarray(kinds)[found.rows])


def test_draws_take_the_memory_of_the_updates_whatever_the_data():
    sizes = set()
    for count in (6, 60_000):
        draws, own = Draws(3, SETTINGS), weights_of(np.ones(count)).drawn_by
        for seed in range(3):
            draws.add(own, jnp.asarray(seed), own)
        sizes.add(sum(leaf.nbytes for leaf in jax.tree.leaves((draws.updates, draws.samples))))
    assert sizes == {3 * 4 * (SETTINGS.steps * SETTINGS.batch + draws_module.SAMPLES)}


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="this system does not set files' room aside")
def test_a_full_folder_for_temporary_files_is_named(monkeypatch):
    def refuse(*_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    assert temporary((0,), np.float32).shape == (0,)
    with pytest.raises(InputError, match=r"no room for a temporary file of 4 MiB .*TMPDIR"):
        temporary((1 << 20,), np.float32)
