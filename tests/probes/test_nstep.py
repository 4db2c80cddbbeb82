"""n-step transitions: one family from the dual of single steps to weights of whole episodes."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.problems import uniform_episodes
from support.ragged import HORIZON, KEY, ragged, ragged_episodes, some_nu
from support.training import deterministic_momdp

from aetdice import Episodes, InputError, TrainingConfig, bsr, esr, ser, solve_dual, train
from aetdice.algorithms.dice import aetdice
from aetdice.data.segments import CUT, augment_segments, segment_episodes
from aetdice.exact import OfflineProblem
from aetdice.exact.episode_weights import episode_weights
from aetdice.exact.mixtures import best_mixture
from aetdice.learning.setup import algorithm_for
from aetdice.objectives import DIVERGENCES, Identity


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
@pytest.mark.parametrize("n_step", [1, 2, 3, HORIZON, 9])
def test_segments_are_those_of_a_loop(n_step, cut):
    episodes = ragged_episodes(cut=cut)
    coarse, segment = segment_episodes(episodes, n_step, HORIZON)
    rows, number, found = [], 0, iter(coarse)
    for episode in episodes:
        steps = len(episode.rewards)
        censored = not episode.terminated and steps < HORIZON
        parts = [range(t, min(t + n_step, steps)) for t in range(0, steps, n_step)]
        whole = [part for part in parts if len(part) == n_step or not censored]
        for part in parts:
            rows += [number if part in whole else CUT] * len(part)
            number += part in whole
        if whole:
            own = next(found)
            np.testing.assert_array_equal(own.observations[:-1], [episode.observations[p[0]] for p in whole])
            np.testing.assert_array_equal(own.observations[-1], episode.observations[whole[-1][-1] + 1])
            paid = [episode.rewards[part[0] : part[-1] + 1].sum(axis=0) for part in whole]
            np.testing.assert_allclose(own.rewards, paid)
            assert (own.terminated, own.truncated) == (episode.terminated, episode.truncated)
    np.testing.assert_array_equal(segment, rows)
    assert next(found, None) is None


def test_steps_of_a_segment_share_its_ratio_and_mass_is_that_of_single_steps():
    data = ragged(cut=True, n_step=2)
    segments, of_step = data.segmented, data.segments.of_step
    ratios = jnp.arange(1.0, segments.steps.count + 1)
    mass = np.asarray(data.onto_steps(ratios * segments.steps.weight))
    expected = np.where(of_step == CUT, 0, ratios[of_step] * data.steps.weight)
    np.testing.assert_allclose(mass, expected, rtol=1e-6)
    # A cut recording says nothing of the segment it was cut in; the others stand for it as well.
    alike = data.onto_steps(segments.steps.weight)
    by_time = jax.ops.segment_sum(alike, data.steps.time, HORIZON)
    every = jax.ops.segment_sum(data.steps.weight, data.steps.time, HORIZON)
    np.testing.assert_allclose(by_time[0], every[0], atol=0.21)


def test_segments_too_long_for_every_recording_are_refused():
    short = Episodes.from_list(list(ragged_episodes(cut=True))[-1:])
    with pytest.raises(InputError, match=r"no recording has 4 steps in a row; use a smaller dual\.n_step"):
        augment_segments(short, Identity(), 4, HORIZON)


@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize("objective", [esr(), bsr(0.5), ser()], ids=["esr", "bsr", "ser"])
def test_whole_episodes_have_the_weights_of_the_convex_program(objective, divergence):
    """n = H with one initial state: ν is one constant, which the exact refit finds, whatever ν was."""
    beta, data = 0.02, ragged(cut=False, n_step=HORIZON)
    settings = {"dual.n_step": HORIZON, "dual.divergence": divergence}
    learner = aetdice(HORIZON, TrainingConfig().adapted(settings))
    hyper = jax.tree.map(
        lambda leaf: jnp.asarray(leaf, jnp.float32), learner.hyper(objective, 1e-3, beta=beta)
    )
    state = learner.init(some_nu().encoder, hyper, data, KEY)
    weighing = learner.weigh(learner.finish(state, hyper, data), hyper, data)
    episodes = ragged_episodes(cut=False)
    solved = episode_weights(objective, episodes.returns, HORIZON * beta, DIVERGENCES[divergence]())
    assert np.ptp(solved.ratios) > 0.1
    found = np.asarray(weighing.weights)[np.asarray(data.initial)] * len(episodes)
    np.testing.assert_allclose(found, solved.ratios, atol=2e-5)
    assert float(weighing.metrics["mass_violation"]) < 1e-5


def of_parts(episodes: Episodes, n_step: int, horizon: int) -> Episodes:
    """Segments with one number for each series of actions: what an exact solver can group."""
    coarse, segment = segment_episodes(episodes, n_step, horizon)
    series = [tuple(episodes.actions[segment == row]) for row in range(coarse.steps)]
    known = {each: number for number, each in enumerate(sorted(set(series)))}
    actions = np.array([known[each] for each in series])
    parts = (coarse.observations, actions, coarse.rewards, coarse.lengths, coarse.terminated)
    return Episodes(*parts, coarse.truncated, coarse.objectives)


@pytest.mark.trains
@pytest.mark.parametrize("n_step", [2, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 4))])
def test_trained_dual_is_the_exact_one_of_the_segmented_problem(n_step):
    momdp, beta, objective = deterministic_momdp(3), 0.05, bsr(0.5)
    data = uniform_episodes(momdp, 200, 0)
    exact = solve_dual(OfflineProblem.from_episodes(of_parts(data, n_step, 4), objective), beta=n_step * beta)
    settings = {"dual.n_step": n_step, "dual.steps": 1_500, "network.hidden": (32,), "extraction.steps": 1}
    run = train(data, objective, beta=beta, config=TrainingConfig().adapted(settings), progress=False)
    assert run.selected.diagnostics["dual_value"] == pytest.approx(exact.value, abs=5e-3)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("objective", [esr(), bsr(0.5), ser()], ids=["esr", "bsr", "ser"])
def test_on_augmented_states_nothing_beats_the_best_mixture_of_recorded_episodes(objective, seed):
    """With deterministic transitions and one initial state: why whole episodes are enough there."""
    data = uniform_episodes(deterministic_momdp(seed, states=3, horizon=5), 40, seed)
    exact = solve_dual(OfflineProblem.from_episodes(data, objective), beta=1e-6)
    best = best_mixture(objective, data.returns).value
    assert exact.value == pytest.approx(best, abs=1e-3)


@pytest.mark.parametrize("name", ["optidice", "fairdice"])
def test_discounted_flows_have_no_segments(name):
    config = TrainingConfig().adapted({"dual.n_step": 4})
    assert algorithm_for("aetdice", HORIZON, config).n_step == 4
    message = f"{name} does not read dual.n_step; it belongs to aetdice"
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        algorithm_for(name, HORIZON, config)
