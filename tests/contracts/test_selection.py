"""Which setting is selected: for each objective its own, by what the diagnostics say."""

import jax
import numpy as np
import pytest

from aetdice import Member, Policy, Run, TrainingConfig, Verdict, bsr
from aetdice.learning.run import select_members as select
from aetdice.learning.selection import FIRST, ONLY, RULE
from aetdice.networks import Categorical, Encoder, PolicyNetwork

ENCODER = Encoder((1,), 1, True, True, np.zeros(1), np.ones(1), np.ones(2), 0, 8)
ANYONE = Policy(PolicyNetwork(ENCODER, Categorical(2), (2,), jax.random.key(0)))
SOUND = {
    "mass_violation": 0.01,
    "flow_violation": 0.1,
    "effective_sample_size": 0.5,
    "held_out_claimed_value": 0.0,
}


def member(objective, beta, seed=0, **diagnostics):
    params = {"algorithm": "aetdice", "objective": objective.short_name, "beta": beta, "seed": seed}
    found = {**SOUND, **diagnostics}
    return Member(params, objective, ANYONE, ANYONE, found, Verdict(True, ""))


def grid(values, **more):
    """Members of two objectives and two β with two seeds each; `values` by (α, β)."""
    return [
        member(bsr(alpha), beta, seed, held_out_claimed_value=values[alpha, beta] + 0.1 * seed, **more)
        for alpha in (0.2, 0.8)
        for beta in (0.1, 1.0)
        for seed in (0, 1)
    ]


LIKED = {(0.2, 0.1): 5.0, (0.2, 1.0): 3.0, (0.8, 0.1): 1.0, (0.8, 1.0): 2.0}


def chosen(members):
    return [(members[s.chosen].params["beta"], members[s.chosen].params["seed"]) for s in select(members)]


def test_each_objective_selects_its_own_setting():
    members = grid(LIKED)
    assert chosen(members) == [(0.1, 0), (1.0, 0)]
    assert [selection.rule for selection in select(members)] == [RULE, RULE]
    run = Run(members, select(members), "aetdice", TrainingConfig(), 3, 0.0, np.zeros((1, 2)))
    assert [run.seeds_of(selection) for selection in run.selections] == [[0, 1], [6, 7]]
    assert run.selected is members[0]


@pytest.mark.parametrize(
    "fault", [{"mass_violation": 0.06}, {"flow_violation": 0.7}, {"effective_sample_size": 0.01}]
)
def test_unsound_setting_is_passed_over(fault):
    members = grid(LIKED)
    for each in members[:2]:
        each.diagnostics.update(fault)
    assert chosen(members) == [(1.0, 0), (1.0, 0)]


def test_where_nothing_is_sound_the_best_balanced_is_taken():
    members = grid(LIKED, mass_violation=1.0)
    for each in members[2:4]:
        each.diagnostics["flow_violation"] = 0.05
    assert chosen(members) == [(1.0, 0), (0.1, 0)]
    assert all(selection.rule.startswith("no setting passed the rule") for selection in select(members))


def test_one_setting_needs_no_rule():
    members = [member(bsr(alpha), 0.1, seed) for alpha in (0.2, 0.8) for seed in (0, 1)]
    assert [(s.chosen, s.rule) for s in select(members)] == [(0, ONLY), (2, ONLY)]


def test_algorithm_without_a_claim_takes_the_first():
    members = grid(LIKED)
    for each in members:
        del each.diagnostics["held_out_claimed_value"]
    assert [(s.chosen, s.rule) for s in select(members)] == [(0, FIRST), (4, FIRST)]
