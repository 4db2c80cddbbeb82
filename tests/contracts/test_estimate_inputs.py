"""What is asked of an estimate wrongly is refused in one sentence; what is odd gets a right answer."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from support.every_episode import random_policy
from support.logs import COLUMNS, log_columns
from support.problems import random_tables, uniform_episodes
from support.training import tiny_episodes, tiny_run

from aetdice import InputError, Objective, bsr, enumerate_space, estimate, load_dataset, select
from aetdice.estimation.acting import Augmented, DiscreteActing
from aetdice.estimation.inputs import check_kinds, recorded
from aetdice.estimation.tabular_acting import TabularActing
from aetdice.exact import uniform_policy
from aetdice.learning.comparison import check_runs
from aetdice.report.tables import estimate_rows

OBJECTIVE = bsr(0.5)


class Coin(DiscreteActing):
    """Any action, as likely as the others."""

    def probabilities(self, states: Augmented):
        return np.full((len(states.time), 2), 0.5)


@pytest.fixture(scope="module")
def run():
    return tiny_run()


@pytest.fixture(scope="module")
def log_run():
    return tiny_run(data=log_of(log_columns()))


def log_of(columns):
    import pyarrow as pa

    return load_dataset(pa.table(columns), columns=COLUMNS, ends="shift")


def fractions(data, size):
    """The same steps, with observations that are no whole numbers."""
    return replace(data, observations=np.full((len(data.observations), size), 0.5))


@pytest.mark.trains
@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (lambda data: fractions(data, 4), "observations of 1 entries, the data has 4"),
        (lambda data: fractions(data, 1), "observations of whole numbers, those of the data are not"),
        (
            lambda data: uniform_episodes(random_tables(0, states=9).momdp(), 50, 0),
            "a whole number from 0 to 2, but in .*% of the data's it is",
        ),
        (
            lambda data: replace(data, actions=np.full((data.steps, 2), 0.5)),
            "discrete actions, the data cont",
        ),
        (
            lambda data: uniform_episodes(random_tables(0, 3).momdp(), 50, 0),
            "knows 2 objectives, the data 3",
        ),
        (lambda data: replace(data, objectives=("r1", "r0")), "are r0, r1, those of the data r1, r0"),
    ],
)
def test_other_data_than_the_policys_is_refused(run, changed, words):
    other, data = changed(tiny_episodes()), tiny_episodes()
    with pytest.raises(InputError, match=words):
        estimate(run.policy, other)
    with pytest.raises(InputError, match=words):
        estimate(run.policy, data, seen=other)


@pytest.mark.trains
def test_other_arguments_are_refused(run):
    data = tiny_episodes()
    ser_of_three = Objective(lambda r: r, lambda k: (k * jnp.ones(3)).sum())
    for words, options in (
        ("the objective does not fit 2 objectives", {"objective": ser_of_three}),
        ("F is not finite", {"objective": Objective(jnp.log, jnp.sum)}),
        ("trained for 3 steps, not for a horizon of 9", {"horizon": 9}),
        ("has 3 steps, more than the horizon of 2", {"horizon": 2}),
        ("between 0 and 1, not at 90.0", {"level": 90.0}),
    ):
        with pytest.raises(InputError, match=words):
            estimate(run.policy, data, **options)
    with pytest.raises(InputError, match="2 runs need as many names, not 1"):
        select([run, run], data, names=["one"])


@pytest.mark.trains
def test_what_is_of_another_kind_is_named(run):
    data = tiny_episodes()
    for words, policies, datasets, objective, horizon, level in (
        ("what load_policy gives, or a run's run.policy; not Run", [run], [data], None, None, 0.9),
        ("what load_policy gives.*not str", [run.policy, "twin.npz"], [data], None, None, 0.9),
        ("a dataset is Episodes.*not str", [run.policy], [data, "log.csv"], None, None, 0.9),
        ("an objective is made by", [run.policy], [data], "esr", None, 0.9),
        ("a whole number of steps, not 2.5", [run.policy], [data], None, 2.5, 0.9),
        ("between 0 and 1, not at high", [run.policy], [data], None, None, "high"),
    ):
        with pytest.raises(InputError, match=words):
            check_kinds(policies, datasets, objective, horizon, level)
    for runs in (["run"], run):
        with pytest.raises(InputError, match="a list of what train or load_run gives"):
            check_runs(runs)


def test_parts_of_different_data_are_not_joined():
    data = tiny_episodes()
    for seen, words in (
        (fractions(data, 1), "whole observations, what was seen 1-dimensional fractional"),
        (replace(data, objectives=("a", "b")), None),
        (replace(data, objectives=("r1", "r0")), "those of what was seen r1, r0"),
    ):
        if words is None:
            assert estimate(Coin(), data, OBJECTIVE, seen=seen).episodes == 100
            continue
        with pytest.raises(InputError, match=words):
            estimate(Coin(), data, OBJECTIVE, seen=seen)


@pytest.mark.trains
def test_a_later_log_that_lacks_a_category_is_read_with_the_policys_own_numbers(log_run):
    columns = log_columns(seed=5)
    columns["district"] = ["west" if name == "south" else name for name in columns["district"]]
    columns["send"] = [None if name is None else "stay" for name in columns["send"]]
    later = log_of(columns)
    found = recorded(log_run.policy, log_run.twin, later, None, None).episodes
    assert found.coding == log_run.policy.coding
    named = dict(zip(("queue", "north", "south", "west"), found.observations.T, strict=True))
    np.testing.assert_allclose(named["queue"], columns["queue"])
    np.testing.assert_array_equal(named["west"] == 1, np.array(columns["district"]) == "west")
    assert not named["south"].any()
    assert set(found.coding.decode(found.actions)) == {"stay"}
    columns["district"][3] = "east"
    with pytest.raises(InputError, match="'district' is 'east', which the policy never had; known: north"):
        estimate(log_run.policy, log_of(columns))


def test_a_log_that_was_cut_before_the_horizon_is_not_trusted():
    """Three recorded steps of five: the model goes on, but what the log attains is not known."""
    data = tiny_episodes()
    found = estimate(Coin(), data, OBJECTIVE, horizon=5)
    assert found.support.word == "do not trust"
    assert "nothing was recorded beyond step 3 of 5" in found.support.words
    assert found.improvement is None
    known = {"policy": found.record(), "twin": found.record(), "self_check": {"words": ""}}
    assert estimate_rows(known)["better"] == "than the log or not: that was not recorded"
    over = replace(data, terminated=np.ones(50, bool), truncated=np.zeros(50, bool))
    assert estimate(Coin(), over, OBJECTIVE, horizon=5).improvement is not None


def test_nothing_beats_a_log_whose_rewards_are_constant():
    data = tiny_episodes()
    for reward in (0.0, 1.0, -0.3):
        even = replace(data, rewards=np.full_like(data.rewards, reward))
        found = estimate(Coin(), even, OBJECTIVE, twin=Coin())
        exact = float(OBJECTIVE(jnp.full((1, 2), 3 * reward)))
        assert (found.value, found.logged.value) == pytest.approx((exact, exact), rel=1e-6)
        assert (found.support.word, found.improvement, found.disagreement) == ("supported", 0.0, 0.0)


def test_a_single_episode_is_no_evidence():
    data = tiny_episodes()
    one, rest = data.select(np.array([0])), data.select(np.arange(1, 50))
    assert estimate(Coin(), one, OBJECTIVE, twin=Coin()).support.word == "do not trust"
    both = estimate(Coin(), one, OBJECTIVE, twin=Coin(), seen=rest)
    assert (both.episodes, both.unseen) == (50, 1)
    assert np.isfinite(both.interval).all()
    for count in (1, 2, 3):
        few = fractions(data.select(np.arange(count)), 1)
        assert estimate(Coin(), few, OBJECTIVE, twin=Coin()).support.word == "do not trust"


def test_a_deterministic_policy_is_estimated_as_it_is():
    space = enumerate_space(random_tables(0).momdp())
    shares = random_policy(space, 3).probabilities
    policy = replace(random_policy(space, 3), probabilities=[np.eye(2)[p.argmax(axis=1)] for p in shares])
    behaviour = uniform_policy(space)
    data, truth = behaviour.rollout(4_000, seed=0), policy.outcomes().score(OBJECTIVE)
    found = estimate(TabularActing(policy), data, OBJECTIVE, twin=TabularActing(behaviour), horizon=3)
    assert found.support.word == "supported"
    assert found.opinions["importance sampling"]["heard"]
    assert abs(found.value - truth) < 2 * found.interval.half
    assert found.interval.half < 0.2
