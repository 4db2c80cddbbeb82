"""The three ways an episode ends, on a problem whose episodes are all listed in their proportions.

A shift of at most three steps: two actions, and after each step a coin says whether the shift is over.
"""

import dataclasses
import itertools

import numpy as np
import pytest

from aetdice import Episode, Episodes, OfflineProblem, TabularMOMDP, esr, ser, solve, solve_dual
from aetdice.data import censoring_weights
from aetdice.data.successors import pooled_outcomes
from aetdice.exact import enumerate_space, uniform_policy
from aetdice.objectives import in_float64

HORIZON = 3
REWARDS = np.array([[[1.0, 0.0], [0.0, 2.0]], [[2.0, 0.0], [0.0, 1.0]]])
"""By state and action; the action is the next state."""


def shift_problem() -> TabularMOMDP:
    """State 2 is the end of the shift, reached half of the time."""
    transition = np.zeros((3, 2, 3))
    transition[2, :, 2] = 1
    for state, action in itertools.product(range(2), range(2)):
        transition[state, action, [action, 2]] = 0.5
    rewards = np.concatenate([REWARDS, np.zeros((1, 2, 2))])
    return TabularMOMDP.from_arrays(transition, rewards, 0, HORIZON, np.array([False, False, True]))


def episode(actions, **flags) -> Episode:
    states = np.array([0, *actions])
    return Episode(
        states[:, None], np.array(actions), REWARDS[states[:-1], actions], **{"terminated": False, **flags}
    )


def all_shifts(**flags) -> list[Episode]:
    """Every course of a shift under random actions, as often as it happens in 64."""
    found = []
    for length in range(1, HORIZON + 1):
        copies = 4 ** (HORIZON - length) * (2 if length == HORIZON else 1) * 2
        for actions in itertools.product(range(2), repeat=length):
            found += [episode(actions, **flags)] * copies
    return found


def expected_utilities(episodes, objective):
    returns = [each.rewards.sum(axis=0) for each in episodes]
    return np.mean([in_float64(objective.utility)(each) for each in returns], axis=0)


ENDS = {
    "terminated": ({"terminated": True, "truncated": False}, "recording"),
    "by design": ({"terminated": False, "truncated": True}, "shift"),
}


@pytest.mark.parametrize("objective", [esr(), ser()], ids=["esr", "ser"])
@pytest.mark.parametrize("kind", ENDS)
def test_an_end_for_good_and_an_end_by_design_are_the_same_problem(kind, objective):
    flags, ends = ENDS[kind]
    shifts = all_shifts(**flags)
    data = dataclasses.replace(Episodes.from_list(shifts), ends=ends)
    problem = OfflineProblem.from_episodes(data, objective)
    ones = np.ones(problem.mass.size)
    assert problem.mass_violation(ones) == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(problem.utilities(ones), expected_utilities(shifts, objective), rtol=1e-9)
    best = solve(shift_problem(), objective).value
    assert solve_dual(problem, 1e-5).value == pytest.approx(best, abs=1e-3)


def test_listed_shifts_are_what_the_problem_brings():
    objective = esr()
    exact = uniform_policy(enumerate_space(shift_problem())).outcomes()
    listed = np.mean([each.rewards.sum(axis=0) for each in all_shifts(truncated=True)], axis=0)
    np.testing.assert_allclose(exact.mean, listed, rtol=1e-12)
    assert objective.regime(2) == "ESR"


def whole_and_cut() -> tuple[Episodes, Episodes]:
    """Every course of three steps eight times; and the same with every other cut, half of those at once."""
    whole = [
        episode(actions, truncated=True)
        for actions in itertools.product(range(2), repeat=HORIZON)
        for _ in range(8)
    ]
    cut = []
    for index, each in enumerate(whole):
        kept = {1: 1, 3: 2, 5: 1, 7: 2}.get(index % 8, HORIZON)
        cut.append(
            each._replace(
                observations=each.observations[: kept + 1],
                actions=each.actions[:kept],
                rewards=each.rewards[:kept],
            )
        )
    return Episodes.from_list(whole), Episodes.from_list(cut)


@pytest.mark.parametrize("objective", [esr(), ser()], ids=["esr", "ser"])
def test_cut_recordings_are_the_problem_of_the_whole_ones(objective):
    whole, cut = (OfflineProblem.from_episodes(part, objective) for part in whole_and_cut())
    np.testing.assert_allclose(cut.mass, whole.mass, rtol=1e-12)
    np.testing.assert_allclose(cut.transformed_reward, whole.transformed_reward, rtol=1e-12)
    assert solve_dual(cut, 1e-2).value == pytest.approx(solve_dual(whole, 1e-2).value, abs=1e-9)


@pytest.mark.parametrize("shown", [True, False], ids=["time left is seen", "not seen"])
def test_a_clock_that_is_seen_ends_shifts_of_every_length(shown):
    """Two steps or three, no observation after the last: what is left tells when nothing follows.

    Unseen, the end of the longest shifts is that of the horizon, and other shifts may go on from there; what
    follows their last steps is not known, so these are not counted.
    """
    shifts = []
    for index in range(40):
        length = 2 + index % 2
        left = np.arange(length, -1, -1).clip(1)
        frames = np.stack([np.full(length + 1, 5), left if shown else np.ones_like(left)], axis=1)
        reward = np.full((length, 1), 1.0 + index // 2 % 2)
        shifts.append(Episode(frames, np.zeros(length, int), reward, False, True))
    data = dataclasses.replace(Episodes.from_list(shifts), ends="shift").settled()
    outcomes = pooled_outcomes(data, data)
    ending = np.sum(outcomes.ends * outcomes.probabilities, axis=1)
    last = np.zeros(data.steps, bool)
    last[data.starts + data.lengths - 1] = True
    if shown:
        np.testing.assert_allclose(ending, last)
    else:
        np.testing.assert_allclose(ending, 20 / (data.steps - 20))


def test_the_wrong_word_is_another_problem():
    """So that the tests above can fail: shifts taken for cut recordings, and the reverse."""
    objective = esr()
    shifts = Episodes.from_list(all_shifts(truncated=True))
    right = OfflineProblem.from_episodes(dataclasses.replace(shifts, ends="shift"), objective)
    wrong = OfflineProblem.from_episodes(shifts, objective)
    assert solve_dual(wrong, 1e-3).value > solve_dual(right, 1e-3).value + 0.5
    whole, cut = whole_and_cut()
    values = [
        solve_dual(OfflineProblem.from_episodes(part, objective), 1e-2).value
        for part in (whole, dataclasses.replace(cut, ends="shift"))
    ]
    assert abs(values[0] - values[1]) > 0.1
    assert censoring_weights(shifts, HORIZON).max() * len(shifts) == pytest.approx(4)
