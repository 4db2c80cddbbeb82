"""What follows a state and an action, pooled over a dataset: the empirical transition model.

A recorded step shows one successor. Where transitions are stochastic that is one draw, and an
optimiser takes a lucky one for a good action. The transition does not depend on accrued reward or
time, so all steps with the same observation and action tell of it together.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from aetdice.data.episodes import Episodes

MOST_OUTCOMES = 32
"""Of one state and action; rarer ones are left out."""
MOST_STATES = 1 << 62


class Outcomes(NamedTuple):
    """For every step the possible outcomes of its state and action; padded with probability 0."""

    observations: Shaped[np.ndarray, "steps k *o"]
    rewards: Float[np.ndarray, "steps k m"]
    ends: Bool[np.ndarray, "steps k"]
    probabilities: Float[np.ndarray, "steps k"]


def pooled_outcomes(part: Episodes, model: Episodes) -> Outcomes | None:
    """The outcomes of every step of `part`, as often as `model` has seen them.

    None where observations or actions are continuous, or where nothing is stochastic. A state and
    action that the model has not seen keep their own outcome.
    """
    numbered = _numbered(model, part)
    if numbered is None:
        return None
    seen, own = numbered
    rows, group, chances = _distinct(model, seen)
    if len(rows) == len(np.unique(group)):
        return None
    starts = np.searchsorted(group, np.arange(max(seen.max(), own.max()) + 2))
    counts = np.diff(starts)
    width = int(counts[own].max())
    slot = starts[own][:, None] + np.arange(max(width, 1))[None]
    there = np.arange(max(width, 1))[None] < counts[own][:, None]
    found = rows[np.minimum(slot, len(rows) - 1)]
    probability = np.where(there, chances[np.minimum(slot, len(rows) - 1)], 0.0)
    after, ends = _after(model)
    unseen = counts[own] == 0
    observations, rewards = after[found], model.rewards[found]
    ends = ends[found]
    own_after, own_ends = _after(part)
    observations[unseen, 0], rewards[unseen, 0] = own_after[unseen], part.rewards[unseen]
    ends[unseen, 0], probability[unseen, 0] = own_ends[unseen], 1.0
    return Outcomes(observations, rewards, ends, probability)


def distinct_outcomes(episodes: Episodes) -> tuple[int, int] | None:
    """How many states and actions were seen more than once, and how many of them led to different outcomes.

    None where observations or actions are continuous.
    """
    whole = all(np.issubdtype(part.dtype, np.integer) for part in (episodes.observations, episodes.actions))
    numbered = _numbered(episodes) if whole else None
    if numbered is None:
        return None
    _, group, _ = _distinct(episodes, numbered[0])
    counts = np.bincount(numbered[0][followed(episodes)])
    outcomes = np.bincount(group, minlength=len(counts))
    return int(np.sum(counts > 1)), int(np.sum((counts > 1) & (outcomes > 1)))


def _distinct(
    model: Episodes, seen: Int[np.ndarray, " steps"]
) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """A row for every distinct outcome, by state and action; how likely each is."""
    after, ends = _after(model)
    table = np.column_stack([seen, after.reshape(len(seen), -1), ends, model.rewards])
    known = np.flatnonzero(followed(model))
    _, rows, counts = np.unique(table[known], axis=0, return_index=True, return_counts=True)
    rows = known[rows]
    order = np.lexsort([-counts, seen[rows]])
    rows, counts = rows[order], counts[order]
    group = seen[rows]
    rank = np.arange(len(rows)) - np.searchsorted(group, group)
    kept = rank < MOST_OUTCOMES
    rows, counts, group = rows[kept], counts[kept].astype(float), group[kept]
    totals = np.bincount(group, counts)
    return rows, group, counts / totals[group]


def _numbered(*parts: Episodes) -> list[Int[np.ndarray, " steps"]] | None:
    """The same number for the same observation and action; None if they are not whole numbers."""
    if not all(
        np.issubdtype(array.dtype, np.integer)
        for part in parts
        for array in (part.observations, part.actions)
    ):
        return None  # before any of it is copied
    columns = [np.column_stack([_before(part), part.actions.reshape(part.steps, -1)]) for part in parts]
    numbers = number_rows(np.concatenate(columns))
    return None if numbers is None else np.split(numbers, np.cumsum([part.steps for part in parts])[:-1])


def number_rows(table: Shaped[np.ndarray, "rows columns"]) -> Int[np.ndarray, " rows"] | None:
    """The same number for the same row; None if they are not whole numbers, or too many to tell apart."""
    if not np.issubdtype(table.dtype, np.integer):
        return None
    low, sizes = table.min(axis=0), np.ptp(table, axis=0).astype(object) + 1
    if np.prod(sizes) > MOST_STATES:
        return None
    codes = np.zeros(len(table), np.int64)
    for column, size in zip((table - low).T, sizes, strict=True):
        codes = codes * int(size) + column
    return np.unique(codes, return_inverse=True)[1]


def frames_before(part: Episodes) -> Int[np.ndarray, " steps"]:
    """The row of the observation before every step; the one after it is the next row."""
    return np.arange(part.steps) + np.repeat(np.arange(len(part)), part.lengths)


def ending_steps(part: Episodes) -> Bool[np.ndarray, " steps"]:
    """Whether a step ended its episode, other than by the clock."""
    found = np.zeros(part.steps, bool)
    found[part.starts + part.lengths - 1] = part.terminated & ~part.truncated
    return found


def followed(part: Episodes) -> Bool[np.ndarray, " steps"]:
    """Whether it is known what came after each step.

    After the clock's end some logs have nothing, and the last observation stands in for what followed: if
    it does wherever the clock ended an episode, those last steps say nothing about transitions.
    """
    over = part.terminated & ~part.truncated
    by_clock = ~over & (part.terminated | (part.lengths == part.lengths.max()))
    last = (part.starts + part.lengths - 1)[by_clock]
    frames, found = frames_before(part)[last], np.ones(part.steps, bool)
    if len(last) < part.steps and np.array_equal(part.observations[frames], part.observations[frames + 1]):
        found[last] = False
    return found


def _before(part: Episodes) -> Shaped[np.ndarray, "steps o"]:
    return part.observations[frames_before(part)].reshape(part.steps, -1)


def _after(part: Episodes) -> tuple[Shaped[np.ndarray, "steps o"], Bool[np.ndarray, " steps"]]:
    """The observation after every step, and whether the episode terminated there.

    An end that is marked as truncated too is that of the clock, which no state or action brings about.
    """
    return part.observations[frames_before(part) + 1].reshape(part.steps, -1), ending_steps(part)
