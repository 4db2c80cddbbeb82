"""Episodes that cannot be: refused with the episode, the step and the column."""

import re

import numpy as np
import pytest

from aetdice.data import Episode, Episodes, augment
from aetdice.errors import InputError
from aetdice.objectives import Identity

GOOD = Episode(
    observations=np.zeros((4, 2)),
    actions=np.zeros(3, int),
    rewards=np.ones((3, 2)),
    terminated=False,
    truncated=True,
)


def refused(message):
    return pytest.raises(InputError, match=re.escape(message))


def spoilt(part, place, value):
    """The good episode with one entry of one part replaced."""
    values = getattr(GOOD, part).astype(float)
    values[place] = value
    return GOOD._replace(**{part: values})


@pytest.mark.parametrize(
    ("episode", "message"),
    [
        (
            spoilt("rewards", (2, 1), np.nan),
            "rewards must be finite, but episode 1, step 2, objective 'b' is nan",
        ),
        (
            spoilt("rewards", (0, 0), np.inf),
            "rewards must be finite, but episode 1, step 0, objective 'a' is inf",
        ),
        (spoilt("rewards", (1, 0), -np.inf), "episode 1, step 1, objective 'a' is -inf"),
        (
            spoilt("observations", (3, 1), np.nan),
            "observations must be finite, but episode 1, step 3, column 1 is nan",
        ),
        (spoilt("observations", (0, 0), np.inf), "episode 1, step 0, column 0 is inf"),
        (spoilt("actions", 1, np.nan), "actions must be finite, but episode 1, step 1 is nan"),
        (
            GOOD._replace(observations=np.zeros((3, 2))),
            "episode 1 has 3 steps and so needs 4 observations (the last one included), not 3",
        ),
        (GOOD._replace(actions=np.zeros(2)), "episode 1 has 3 rewards but 2 actions"),
        (
            GOOD._replace(rewards=np.ones(3)),
            "episode 1: rewards must have shape (steps, objectives), not (3,); "
            "one objective is a column of its own",
        ),
        (
            GOOD._replace(rewards=np.ones((3, 3))),
            "episode 1: rewards have shape (3,) per step, but (2,) in episode 0",
        ),
        (
            GOOD._replace(observations=np.zeros((4, 5))),
            "episode 1: observations have shape (5,) per step, but (2,) in episode 0",
        ),
        (
            GOOD._replace(actions=np.zeros((3, 2))),
            "episode 1: actions have shape (2,) per step, but () in episode 0",
        ),
        (Episode(np.zeros((1, 2)), np.zeros(0), np.ones((0, 2)), True, False), "episode 1 has no steps"),
        (GOOD._replace(truncated=False), "episode 1 ends neither terminated nor truncated; say which"),
        (GOOD._replace(rewards=[[1, 2], [3], [4, 5]]), "episode 1"),
        (GOOD._replace(rewards=[["a", "b"]] * 3), "episode 1"),
    ],
    ids=[
        "NaN reward",
        "infinite reward",
        "negative infinite reward",
        "NaN observation",
        "infinite observation",
        "NaN action",
        "no last observation",
        "too few actions",
        "scalar rewards",
        "more objectives",
        "wider observations",
        "wider actions",
        "no steps",
        "no end",
        "ragged rewards",
        "words for rewards",
    ],
)
def test_broken_episode_is_refused_with_its_number(episode, message):
    with refused(message):
        Episodes.from_list([GOOD, episode], objectives=("a", "b"))


def test_no_episodes_are_no_dataset():
    with refused("a dataset needs at least one episode"):
        Episodes.from_list([])


def test_episodes_without_objectives_are_no_dataset():
    with refused("objective"):
        Episodes.from_list([GOOD._replace(rewards=np.ones((3, 0)))])


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("a", "a"), "objective names must differ: a, a"),
        (("a",), "objectives has 1 entries, but the episodes need 2"),
        (("a", "b", "c"), "objectives has 3 entries, but the episodes need 2"),
    ],
)
def test_objective_names_must_fit_the_rewards(names, message):
    with refused(message):
        Episodes.from_list([GOOD], objectives=names)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rewards": np.ones((4, 2))}, "rewards has 4 entries, but the episodes need 5"),
        ({"actions": np.zeros(6)}, "actions has 6 entries, but the episodes need 5"),
        ({"observations": np.zeros((5, 1))}, "observations has 5 entries, but the episodes need 7"),
        ({"terminated": np.array([True])}, "terminated has 1 entries, but the episodes need 2"),
        ({"truncated": np.array([True] * 3)}, "truncated has 3 entries, but the episodes need 2"),
        ({"lengths": np.array([5, 0])}, "every episode at least one step"),
        ({"lengths": np.array([6, -1])}, "every episode at least one step"),
        ({"lengths": np.array([], int)}, "a dataset needs at least one episode"),
        (
            {"rewards": np.array([[0, 0]] * 4 + [[0, np.nan]])},
            "rewards must be finite, but episode 1, step 2, objective 'b' is nan",
        ),
        (
            {"observations": np.array([[0.0]] * 6 + [[np.nan]])},
            "observations must be finite, but episode 1, step 3, column 0 is nan",
        ),
        ({"truncated": np.array([True, False])}, "episode 1 ends neither terminated nor truncated"),
    ],
)
def test_flat_arrays_must_fit_each_other(without_type_checks, change, message):
    flat = {
        "observations": np.zeros((7, 1)),
        "actions": np.zeros(5),
        "rewards": np.zeros((5, 2)),
        "lengths": np.array([2, 3]),
        "terminated": np.array([False, False]),
        "truncated": np.array([True, True]),
        "objectives": ("a", "b"),
    }
    with refused(message):
        Episodes(**(flat | change))


@pytest.mark.parametrize(
    ("horizon", "message"),
    [
        (2, "episode 1 has 3 steps, more than the horizon of 2"),
        (1, "episode 1 has 3 steps, more than the horizon of 1"),
        (0, "the horizon must be at least 1, not 0"),
        (-5, "the horizon must be at least 1, not -5"),
    ],
)
def test_horizon_must_hold_the_longest_episode(horizon, message):
    short = Episode(np.zeros((2, 2)), np.zeros(1, int), np.ones((1, 2)), True, False)
    with refused(message):
        augment(Episodes.from_list([short, GOOD]), Identity(), horizon)
