"""Mechanisms whose absence no final score betrays, each asked directly."""

from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.problems import random_tables
from support.ragged import HORIZON, KEY, ragged, some_nu
from support.training import TINY, tiny_episodes, tiny_run
from support.untrained import untrained

from aetdice import Episode, Episodes, bsr, enumerate_space, lsr, ser, solve
from aetdice.algorithms import ALGORITHMS
from aetdice.algorithms.cloning import Cloning
from aetdice.algorithms.dice import aetdice
from aetdice.algorithms.iql import esr_iql, iql_loss, td_target
from aetdice.envs import TwoStep
from aetdice.evaluation.rollout import rollout_returns
from aetdice.evaluation.scores import score_returns
from aetdice.learning.inputs import split
from aetdice.learning.run import gap_share, summarise
from aetdice.learning.selection import RULE, Candidate, select
from aetdice.learning.setup import TWIN_RATE, Setup, readable, set_up
from aetdice.networks import Categorical, Encoder, PolicyNetwork

# Held-out episodes: never trained on, and alone in what is said about them.


def numbered_episodes(count: int, paid: set[int] = frozenset()) -> Episodes:
    """Episode i is seen at i all along; those of `paid` pay 1 in both objectives at every step."""
    return Episodes.from_list(
        [
            Episode(np.full((3, 1), i), np.array([i % 2, 0]), np.full((2, 2), float(i in paid)), False, True)
            for i in range(count)
        ]
    )


def split_of(episodes: Episodes) -> tuple[set[int], set[int]]:
    """The numbers of the episodes for training, and of those held out."""
    config = TINY.adapted({"trainer.holdout": 0.2})
    training, held_out = split(episodes, config, 1)
    return tuple({*np.ravel(part.observations).tolist()} for part in (training, held_out))


def test_held_out_episodes_are_not_trained_on():
    training, held_out = split_of(numbered_episodes(50))
    assert len(held_out) == 10
    assert training.isdisjoint(held_out)
    assert training | held_out == set(range(50))


class Telling(Cloning):
    """Behaviour cloning that also says what the data it weighs pays in all."""

    def weigh(self, state, hyper, data):
        weighing = super().weigh(state, hyper, data)
        return weighing._replace(metrics={"claimed_value": jnp.sum(data.steps.next_accrued)})


def test_held_out_metrics_are_those_of_the_held_out_episodes(monkeypatch):
    """Only what is held out pays, 2 x (1 + 2) an episode."""
    monkeypatch.setitem(ALGORITHMS, "telling", lambda horizon, config: Telling(config))
    _, held_out = split_of(numbered_episodes(50))
    config = TINY.adapted({"trainer.holdout": 0.2, "extraction.steps": 1})
    run = tiny_run(data=numbered_episodes(50, held_out), algorithm="telling", config=config)
    assert run.members[0].diagnostics["claimed_value"] == 0
    assert run.members[0].diagnostics["held_out_claimed_value"] == 10 * 6


# Selection is by the mean over seeds.


def candidates(**by_setting: list[float]) -> list[Candidate]:
    """One member per seed, sound in all but what is given."""
    sound = {"mass_violation": 0.0, "flow_violation": 0.1, "effective_sample_size": 0.5}
    return [
        Candidate("J", (setting,), {**sound, "held_out_claimed_value": value})
        for setting, values in by_setting.items()
        for value in values
    ]


def test_setting_is_selected_by_all_of_its_seeds():
    assert select(candidates(lucky=[10.0, 0.0], steady=[6.0, 6.0])) == [(2, RULE)]


@pytest.mark.parametrize(
    ("name", "seeds"),
    [
        ("mass_violation", (0.0, 0.2)),
        ("flow_violation", (0.0, 2.0)),
        ("effective_sample_size", (0.03, 0.0)),
    ],
)
def test_setting_is_sound_by_all_of_its_seeds(name, seeds):
    members = candidates(better=[9.0, 9.0], sound=[1.0, 1.0])
    for member, value in zip(members, seeds, strict=False):
        member.diagnostics[name] = value
    assert select(members) == [(2, RULE)]


# The dual stage.

DATA = ragged(cut=False)
CHANGED = TINY.without(("iql",))
ONE = aetdice(HORIZON, CHANGED)


@eqx.filter_jit
def started(hyper):
    """Hyper-parameters as a population has them, and a fresh state with some ν."""
    state = ONE.init(some_nu().encoder, hyper, DATA, KEY)
    return state._replace(nu=some_nu(), average=some_nu())


def hyper_of(objective, beta, first_beta):
    hyper = eqx.tree_at(lambda h: h.first_beta, ONE.hyper(objective, 1e-3, beta=beta), first_beta)
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), hyper)


def test_slack_starts_at_the_expected_utilities_of_the_data():
    """r̃ telescopes to F(R) - F(0), and F(0) is not 0."""
    objective = bsr(0.5)
    returns = DATA.steps.next_accrued[np.append(np.asarray(DATA.initial)[1:], DATA.steps.count) - 1]
    assert np.abs(objective.utility(jnp.zeros(2))).min() > 1
    slack = started(hyper_of(objective, 0.1, 0.1)).slack
    np.testing.assert_allclose(slack, objective.expected_utilities(returns), rtol=1e-5)


@eqx.filter_jit
def updated(hyper, step):
    state = started(hyper)
    after = ONE.update(state, hyper, ONE.prepare(state, hyper, DATA, ONE.draw(KEY, DATA), step))
    return jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves((after.nu, after.slack))])


def updates(step, beta, first_beta):
    return np.asarray(updated(hyper_of(bsr(0.5), beta, first_beta), jnp.asarray(step)))


def test_beta_falls_geometrically_during_the_first_part_of_the_dual_stage():
    """Of 100 updates half anneal: the first is made with β₀, the 25th with √(β₀β), the last with β."""
    for step, beta in ((0, 1.0), (25, 0.1), (50, 0.01), (99, 0.01)):
        np.testing.assert_allclose(updates(step, 0.01, 1.0), updates(step, beta, beta), rtol=1e-3, atol=1e-5)
    assert np.abs(updates(0, 0.01, 1.0) - updates(0, 0.01, 0.01)).max() > 1e-3


# ESR-IQL: the smaller of two opinions.

IQL = esr_iql(HORIZON, readable(TINY, "esr-iql"))
IQL_HYPER = IQL.hyper(lsr(), 1e-3, expectile=0.8, temperature=0.5)


@eqx.filter_jit
def opinions(constants):
    """A state whose slow critics say these, whatever they are asked, and whose V is 0."""
    state = IQL.init(some_nu().encoder, IQL_HYPER, DATA, KEY)
    biases = jnp.broadcast_to(constants[:, None], state.slow.nets.biases[-1].shape)
    return state._replace(slow=eqx.tree_at(lambda critics: critics.nets.biases[-1], state.slow, biases))


@eqx.filter_jit
def weights_and_loss(state):
    batch = IQL.prepare(state, IQL_HYPER, DATA, jnp.arange(DATA.steps.count), jnp.asarray(0))
    target = td_target(state.value, batch.target)
    loss = iql_loss((state.value, state.critics), state.slow, IQL_HYPER, batch, target)
    return IQL.weigh(state, IQL_HYPER, DATA).weights, loss


@pytest.mark.parametrize("said", [(1.0, 3.0), (3.0, 1.0)])
def test_sample_weights_and_values_follow_the_smaller_critic(said):
    """Weights are exp(0.5 · 1); L_V = τ u² with u = 1, and the critics' own loss ignores the slow ones."""
    weights, loss = weights_and_loss(opinions(jnp.asarray(said)))
    _, nothing = weights_and_loss(opinions(jnp.zeros(2)))
    np.testing.assert_allclose(weights, np.exp(0.5) * DATA.steps.weight, rtol=1e-5)
    np.testing.assert_allclose(loss - nothing, 0.8, rtol=1e-5)


# Twins learn at a rate of their own.


def test_twins_learn_at_their_own_rate():
    """A twin is what a policy must beat, so it does not change with the members' rates."""
    setup: Setup = set_up(
        tiny_episodes(),
        [bsr(0.5)],
        algorithm="bc",
        horizon=None,
        sweeps={},
        learning_rate=[1e-2, 1e-1],
        seed=[0, 1],
        config=readable(TINY, "bc"),
    )
    np.testing.assert_allclose(setup.policy_rates, [1e-2, 1e-2, 1e-1, 1e-1, TWIN_RATE, TWIN_RATE])
    assert TWIN_RATE == 1e-3
    assert setup.twins == [4, 5, 4, 5]
    assert setup.policy_seeds.tolist() == [0, 1, 0, 1, 0, 1]


# Rollouts end where an environment terminates.


class Generous(TwoStep):
    """As the two-step problem, but it pays (1, -2) at every step, also after the end."""

    @property
    def horizon(self) -> int:
        return 5

    def transition(self, state, action):
        following, _, terminated = super().transition(state, action)
        return following, jnp.asarray([1.0, -2.0]), terminated


def test_rewards_after_termination_do_not_count():
    encoder = Encoder((3,), 5, True, True, np.zeros(1), np.ones(1), np.ones(2), 0, 1)
    network = PolicyNetwork(encoder, Categorical(3), (2,), KEY)
    np.testing.assert_array_equal(rollout_returns(network, Generous(), 3, KEY), [[2, -4]] * 3)


# Figures that are published.


def test_certificate_of_a_coarse_optimum_reaches_the_fine_one():
    """Stopped early, the value falls short of the optimum by no more than the gap; some do fall short."""
    short = []
    for momdp in (random_tables(seed).momdp() for seed in range(4)):
        best, coarse = solve(momdp, ser()), solve(momdp, ser(), tolerance=0.3)
        assert coarse.value <= best.value + best.gap
        assert coarse.value + coarse.gap >= best.value - 1e-12
        short.append(best.value - coarse.value)
    assert max(short) > 1e-3


def test_variances_of_returns_are_those_of_a_sample():
    record = score_returns(np.array([[0.0, 1.0], [2.0, 1.0]]), {"LSR": lsr()}).record()
    assert record["variances"] == [2.0, 0.0]
    assert score_returns(np.array([[3.0, 1.0]]), {"LSR": lsr()}).record()["variances"] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("score", "twin", "best", "share"),
    [(1.0, 0.0, 4.0, 0.25), (-3.0, -5.0, -1.0, 0.5), (-1.0, 0.0, 2.0, -0.5), (3.0, 1.0, 2.0, 2.0)],
)
def test_gap_share_is_the_way_from_the_twin_to_the_best(score, twin, best, share):
    assert gap_share(score, twin, best) == share


def test_there_is_no_gap_share_where_the_twin_is_the_best():
    assert gap_share(2.0, 1.0, 1.0) is None


def test_result_states_the_share_of_the_gap_that_its_own_scores_have(monkeypatch):
    run = untrained(
        tiny_episodes(), [bsr(0.5)], algorithm="bc", horizon=3, seed=[0], config=readable(TINY, "bc")
    )
    assert summarise(run)["gap_share"] is None
    rows = [{"score": 3.0, "twin_score": 1.0}]
    monkeypatch.setattr("aetdice.learning.run._scored_rows", lambda *_: rows)
    monkeypatch.setattr("aetdice.learning.run.solve", lambda *_, **__: SimpleNamespace(value=9.0))
    result = summarise(run, TwoStep(), enumerate_space(random_tables(0).momdp()))
    assert (result["score"], result["twin_score"], result["exact_score"]) == (3.0, 1.0, 9.0)
    assert result["gap_share"] == result["by_objective"][0]["gap_share"] == 0.25
