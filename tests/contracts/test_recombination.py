"""Episodes joined from recorded parts, how chance is told from the data, and what is chosen from it."""

import jax
import numpy as np
import pytest
from support.problems import random_tables, uniform_episodes
from support.training import TINY, deterministic_momdp, tiny_episodes

from aetdice import (
    Episode,
    Episodes,
    TabularMOMDP,
    TrainingConfig,
    bsr,
    esr,
    load_dataset,
    lsr,
    make_env,
    ser,
    solve,
    train,
)
from aetdice.algorithms.dice import Dice
from aetdice.algorithms.episode_weighting import EpisodeWeighting, episode_weighting
from aetdice.data.noise import chance_share
from aetdice.data.recombination import NOWHERE, Recombination
from aetdice.exact.mixtures import best_mixture
from aetdice.learning import choice
from aetdice.learning.choice import (
    BETAS,
    STEADY,
    Choice,
    choose,
    has_one_start,
    some_of,
    with_joined,
    worth_trying,
)
from aetdice.learning.extraction import behaviour_shares, sample_weights_for
from aetdice.learning.inputs import encoder_for, onto_device
from aetdice.learning.setup import algorithm_for, set_up
from aetdice.learning.source import weigh
from aetdice.learning.stitching import join_at_random, stitch

SMALL = {"size": 5, "origins": ((0, 0), (4, 4)), "destinations": ((0, 2), (4, 2)), "start": (2, 2)}


@pytest.fixture(autouse=True)
def settled(monkeypatch):
    """Nothing else is chosen: that takes trainings."""
    monkeypatch.setattr(choice, "settle", lambda *given: given[-1])


def shifts(**arguments) -> Episodes:
    """Of a small taxi, whose drivers each serve one group, in one half of the time."""
    return load_dataset("fair-taxi", horizon=24, episodes=400, quality="shifts", **SMALL, **arguments)


def steps_of(episodes: Episodes) -> set[tuple]:
    """Every step as state, action, reward, next state and whether it terminates."""
    found = set()
    for o, actions, rewards, terminated, _ in episodes:
        last = len(actions) - 1
        for t, (action, reward) in enumerate(zip(actions.tolist(), rewards.tolist(), strict=True)):
            found.add((*o[t].tolist(), action, *reward, *o[t + 1].tolist(), terminated and t == last))
    return found


@pytest.mark.parametrize("ends", [False, True], ids=["to the horizon", "some terminate"])
@pytest.mark.parametrize("how", ["best", "random"])
def test_joined_episodes_are_made_of_recorded_steps(how, ends):
    data = uniform_episodes(random_tables(1, horizon=5, ends=ends).momdp(), 60, 0)
    rng = np.random.default_rng(0)
    parts = Recombination(data, 5, rng)
    ways = parts.recorded
    joins = next(iter(parts.joins(ways))) if how == "best" else parts.drawn(ways, 200, rng)
    new = parts.follow(ways, joins)
    joined = parts.episodes_of(new)
    assert len(joined) > 20
    assert steps_of(joined) <= steps_of(data)
    np.testing.assert_allclose(joined.returns, parts.returns(new), atol=1e-9)
    np.testing.assert_array_equal(joined.truncated, ~joined.terminated)
    if how == "best":  # all of them are whole, and what was foretold
        np.testing.assert_allclose(joined.returns, joins.returns, atol=1e-9)
        assert np.all((joined.lengths == 5) | joined.terminated)


def test_ways_of_recorded_episodes_are_the_episodes():
    data = uniform_episodes(random_tables(1, horizon=5, ends=True).momdp(), 30, 0)
    parts = Recombination(data, 5, np.random.default_rng(0))
    again = parts.episodes_of(parts.recorded)
    assert again.sha256 == data.sha256
    assert np.sum(parts.recorded != NOWHERE) == data.steps


def test_random_joins_leave_outcomes_as_likely_as_recorded():
    """One state, and an action that wins in a third of the cases, whoever is joined to whom."""
    rng = np.random.default_rng(0)
    won = (rng.random((3_000, 4)) < 1 / 3).astype(float)
    episodes = Episodes.from_list(
        [Episode(np.zeros((5, 1), int), np.zeros(4, int), own[:, None], False, True) for own in won]
    )
    joined = join_at_random(episodes, 4, 0)
    assert joined is not None
    assert len(joined) > 5_000
    by_time = joined.rewards.reshape(-1, 4).mean(axis=0)
    np.testing.assert_allclose(by_time, won.mean(), atol=0.025)


def test_episodes_that_never_meet_cannot_be_joined():
    places = (np.arange(4)[:, None] + 10 * i for i in (1, 2))
    alone = [Episode(each, np.zeros(3, int), np.ones((3, 1)), False, True) for each in places]
    episodes = Episodes.from_list(alone)
    found = join_at_random(episodes, 3, 0)
    assert found is None or steps_of(found) <= steps_of(episodes)
    assert stitch(episodes, [esr()], 3, 0).episodes is None


@pytest.mark.parametrize("objective", [esr(), bsr(0.5), ser()], ids=["esr", "bsr", "ser"])
def test_joined_parts_of_shifts_are_better_than_any_recorded_episode(objective):
    """And hardly worse than what is possible at all: states are discrete, so joins are exact."""
    data = shifts()
    joined, (possible,) = stitch(data, [objective], 24, 0)
    assert joined is not None
    best, recorded = (best_mixture(objective, each.returns).value for each in (joined, data))
    assert best > recorded + 0.5
    optimum = solve(
        TabularMOMDP.from_environment(make_env("fair-taxi", horizon=24, **SMALL)), objective
    ).value
    assert best <= possible + 1e-6
    assert recorded + 0.95 * (optimum - recorded) < possible <= optimum + 1e-6


def test_nothing_is_joined_where_recorded_episodes_are_as_good():
    data = load_dataset("fair-taxi", horizon=24, episodes=400, **SMALL)
    found = stitch(data, [esr()], 24, 0)
    assert found.episodes is None
    assert found.possible[0] == pytest.approx(best_mixture(esr(), data.returns).value, abs=0.02)


@pytest.mark.parametrize("weights", [(1.0, 0.0), (0.0, 1.0), (1.0, 0.3)])
def test_plans_lead_to_what_is_possible_and_never_beyond(weights):
    """In a taxi whose drivers serve one group each, of whose world everything was recorded."""
    data = shifts()
    parts = Recombination(data, 24, np.random.default_rng(0))
    returns = parts.planned_returns(parts.plan(np.array(weights)))
    optimum = solve(TabularMOMDP.from_environment(make_env("fair-taxi", horizon=24, **SMALL)), lsr(weights))
    best = np.max(returns @ weights)
    assert best <= optimum.value + 1e-9
    assert best == pytest.approx(optimum.value, abs=0.1)


def test_plans_end_where_episodes_terminate():
    data = uniform_episodes(random_tables(1, horizon=5, ends=True).momdp(), 60, 0)
    parts = Recombination(data, 5, np.random.default_rng(0))
    plan = parts.plan(np.ones(2))
    last = data.starts + data.lengths - 1
    assert np.all(plan[last[data.terminated]] == NOWHERE)
    assert np.mean(plan != NOWHERE) > 0.5
    assert np.all(np.isfinite(parts.planned_returns(plan)))


# Chance.


def test_chance_is_told_from_the_data():
    assert chance_share(shifts()) == 0
    slips = chance_share(shifts(slip=0.3))
    assert 0.05 < slips < 0.3
    maze = {"episodes": 200, "horizon": 100}
    assert chance_share(load_dataset("pointmaze-2obj", **maze)) < 1e-3
    assert chance_share(load_dataset("pointmaze-2obj", slip=0.3, **maze)) > 0.1


def test_continuous_states_that_never_meet_tell_nothing_of_chance():
    rng = np.random.default_rng(0)
    shapes = ((4, 9), (3, 2), (3, 2))
    far = [Episode(*(rng.normal(size=shape) for shape in shapes), False, True) for _ in range(50)]
    assert chance_share(Episodes.from_list(far)) == 0


def test_noise_of_rewards_is_chance():
    data = uniform_episodes(deterministic_momdp(0), 200, 0)
    assert chance_share(data) == 0
    noisy = data.rewards + np.random.default_rng(0).normal(size=data.rewards.shape)
    parts = (data.observations, data.actions, noisy, data.lengths, data.terminated, data.truncated)
    assert chance_share(Episodes(*parts, data.objectives)) > 0.5


# What is chosen.


def chosen(data: Episodes, horizon: int, config: TrainingConfig = TrainingConfig()) -> Choice:
    return choose(data, Choice(algorithm_for("aetdice", horizon, config), config, {}), horizon)


def test_whole_episodes_are_weighed_where_nothing_is_left_to_chance():
    found = chosen(shifts(), 24)
    assert isinstance(found.algorithm, EpisodeWeighting)
    assert found.algorithm.n_step == 24
    assert found.joins == "best"


def test_the_dual_of_single_steps_is_for_chance_and_for_several_starts():
    stochastic = chosen(shifts(slip=0.3), 24)
    assert isinstance(stochastic.algorithm, Dice)
    assert (stochastic.algorithm.n_step, stochastic.joins) == (1, "random")
    assert stochastic.sweeps["beta"] == BETAS
    assert stochastic.config.changed() == {**STEADY, "trainer.holdout": 0.0}
    by_hand = TrainingConfig().adapted({"dual.batch": 64})
    assert chosen(shifts(slip=0.3), 24, by_hand).config.dual.batch == 64
    several = uniform_episodes(random_tables(0).momdp(), 50, 0)
    assert not has_one_start(several)
    assert isinstance(chosen(several, 3).algorithm, Dice)


def test_of_large_data_some_episodes_are_looked_at(monkeypatch):
    data = shifts()
    assert some_of(data) is data
    monkeypatch.setattr(choice, "MOST_STEPS", 240)
    assert len(some_of(data)) == 10
    assert steps_of(some_of(data)) <= steps_of(data)


def test_vectors_of_whole_numbers_as_actions_are_not_joined_at_random():
    data = uniform_episodes(random_tables(0).momdp(), 50, 0)
    pairs = np.column_stack([data.actions, data.actions])
    parts = (data.observations, pairs, data.rewards, data.lengths, data.terminated, data.truncated)
    vectors = Episodes(*parts, data.objectives)
    assert chosen(vectors, 3).joins == "none"
    own = {"algorithm": "aetdice", "horizon": 3, "learning_rate": 1e-3, "seed": 0}
    assert set_up(vectors, [esr()], sweeps={}, config=TINY.without(("iql",)), **own).evidence.model is None


def test_recordings_that_were_all_cut_are_no_whole_episodes():
    choice = chosen(shifts(), 40)  # the horizon is 24
    assert isinstance(choice.algorithm, Dice)
    assert choice.algorithm.n_step == 1


def test_beta_or_n_given_by_hand_is_kept():
    data, config = shifts(), TrainingConfig()

    def algorithm(beta, config):
        own = {"algorithm": "aetdice", "horizon": 24, "learning_rate": 1e-3, "seed": 0, "config": config}
        return set_up(data, [esr()], sweeps={"beta": beta}, **own).algorithm

    assert isinstance(algorithm(None, config), EpisodeWeighting)
    assert algorithm(0.1, config).n_step == 1
    assert algorithm(None, config.adapted({"dual.n_step": 4})).n_step == 4


def test_twins_clone_what_was_recorded_and_nothing_that_was_joined():
    data = shifts()
    own = {"algorithm": "aetdice", "horizon": 24, "learning_rate": 1e-3, "seed": 0}
    setup = set_up(data, [esr()], sweeps={}, config=TINY.without(("iql",)), **own)
    assert setup.training.recorded == data.steps < setup.training.steps.count
    weights = sample_weights_for(None, behaviour_shares(setup.training), setup.training, TINY)
    twin = np.diff(np.asarray(weights.cdf, np.int64), prepend=0)
    assert not np.any(twin[data.steps + 1 :])
    np.testing.assert_allclose(twin[: data.steps], 2.0**32 / data.steps, rtol=1e-3)


def test_a_choice_without_joins_leaves_the_data_alone():
    data = tiny_episodes()
    given = Choice(algorithm_for("bc", 3, TrainingConfig()), TrainingConfig(), {})
    assert with_joined(data, given, [esr()], 3) == (data, ())


def test_policies_without_joins_are_tried_where_there_are_joins():
    every = [{"sample_size": size, "joins": joins} for size in (0.005, 0.03) for joins in (0.0, 1.0)]
    assert worth_trying(every, True) == [every[0], every[1], every[3]]
    assert worth_trying(every, False) == [every[1], every[3]]
    plain = [{"beta": 0.1}]
    assert worth_trying(plain, True) == worth_trying(plain, False) == plain


def test_joined_episodes_can_be_left_out():
    data = shifts()
    joined, _ = with_joined(data, chosen(data, 24), [esr()], 24)
    algorithm = episode_weighting(24, TrainingConfig())
    encoder = encoder_for(data, 24, algorithm, TrainingConfig().network)

    def weighed(device, joins):
        hyper = algorithm.hyper(esr(), 1e-3, sample_size=0.03, joins=joins)
        start = algorithm.init(encoder, hyper, device, jax.random.key(0))
        return weigh(algorithm, algorithm.finish(start, hyper, device), hyper, device)

    device = onto_device(joined, 24, algorithm, recorded=data.steps)
    found = {joins: weighed(device, joins) for joins in (0.0, 1.0)}
    assert float(found[0.0].metrics["joined_share"]) == 0
    assert not np.any(np.asarray(found[0.0].weights)[data.steps :])
    assert float(found[1.0].metrics["joined_share"]) > 0.9
    plain = weighed(onto_device(data, 24, algorithm), 1.0)
    for name in ("claimed_value", "effective_episodes"):
        np.testing.assert_allclose(found[0.0].metrics[name], plain.metrics[name], rtol=1e-3)


@pytest.mark.trains
def test_a_policy_of_joined_parts_says_so():
    settings = {"network.hidden": (32,), "extraction.steps": 400, "trainer.chunk": 400}
    run = train(shifts(), esr(), config=TrainingConfig().adapted(settings), progress=False)
    assert run.selected.diagnostics["joined_share"] > 0.9
    assert run.selected.diagnostics["claimed_value"] > best_mixture(esr(), shifts().returns).value + 0.3
    assert "joined from parts" in run.verdict.words
