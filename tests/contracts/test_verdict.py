"""Everything that speaks against a member is seen, said, and says what to do."""

import pytest

from aetdice.algorithms import Hints
from aetdice.learning.verdict import judge

HINTS = Hints("a smaller beta", closer="a larger beta")
DUAL = {
    "mass_violation": 0.01, "flow_violation": 0.1, "effective_sample_size": 0.012, "episodes": 2_000,
    "distance_to_twin": 1.0, "noise": 0.0,
}  # fmt: skip
WHOLE = {"effective_episodes": 9.0, "stochastic_share": 0.0, "distance_to_twin": 1.0}
PLAYED = {
    "model_value": 9.0, "data_value": 5.0, "claimed_value": 10.0, "model_unknown": 0.01,
    "model_uncertainty": 0.02, "lost_share": 0.2, "possible_value": 10.0,
}  # fmt: skip


@pytest.mark.parametrize("known", [{**DUAL, **PLAYED}, {**WHOLE, **PLAYED}])
def test_good_signs_are_trusted(known):
    """Also a dual that rests on 1.2 % of the data, where that is 24 episodes."""
    verdict = judge(known, HINTS)
    assert verdict.trusted
    assert not any(word.isupper() for word in verdict.words.split() if len(word) > 3)


@pytest.mark.parametrize(
    ("known", "bad", "words"),
    [
        (DUAL, {}, "UNVERIFIED"),
        (WHOLE, {}, "UNVERIFIED"),
        (DUAL, {"mass_violation": 0.2}, "NOT converged"),
        (DUAL, {"flow_violation": 0.9}, "NOT converged"),
        (DUAL, {"effective_sample_size": 0.002}, "COLLAPSED onto 0.2% of the data; use a larger beta"),
        (DUAL | PLAYED, {"distance_to_twin": 0.01}, "INDISTINGUISHABLE"),
        (DUAL | PLAYED, {"noise": 0.2}, "20% of what a step does is chance"),
        (DUAL | PLAYED, {"cloning_shortfall": 0.4}, "CLONING FAILED"),
        (WHOLE | PLAYED, {"effective_episodes": 3.0}, "COLLAPSED onto 3.0 episodes"),
        (WHOLE | PLAYED, {"episodes": 60}, "from FEW, 60"),
        (WHOLE | PLAYED, {"stochastic_share": 0.3}, "REWARD LUCK"),
        (WHOLE | PLAYED, {"model_unknown": 0.3}, "LEAVES THE DATA"),
        (WHOLE | PLAYED, {"model_value": 4.9}, "NO BETTER than the data"),
        (WHOLE | PLAYED, {"lost_share": 0.4}, "promise 10: 40% of the gain is LOST. Train longer"),
        (DUAL | PLAYED, {"model_uncertainty": 0.4}, "UNCERTAIN by 40%"),
    ],
)
def test_each_bad_sign_is_said_and_not_trusted(known, bad, words):
    verdict = judge(known | bad, HINTS)
    assert not verdict.trusted
    assert words in verdict.words


def test_what_a_policy_attains_outweighs_the_signs_of_the_dual():
    verdict = judge(DUAL | PLAYED | {"flow_violation": 0.9, "effective_sample_size": 0.001}, HINTS)
    assert verdict.trusted
    assert "NOT converged" in verdict.words


def test_cloning_itself_can_fail():
    assert judge({"cloning_shortfall": 0.1}, None).trusted
    assert not judge({"cloning_shortfall": 0.5}, None).trusted
