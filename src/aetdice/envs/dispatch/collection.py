"""The dispatch dataset: five dispatchers with habits of their own, none of whom looks at the whole street."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Int

from aetdice.data import Episodes
from aetdice.envs.dispatch.centre import BROKEN, CENTRE, DISTRICTS, REPAIR, STREET, Dispatch
from aetdice.errors import InputError

SHIFTS = 3000
EXPLORATION = (0.05, 0.15, 0.3)
"""Probability of a random action; each shift keeps one of them."""
ROUND = (0, 1, 0, 2)
"""Districts in the order of a tour."""
QUALITIES = ("mixed",)

Seen = Int[np.ndarray, "n 6"]
Each = Int[np.ndarray, " n"]
Habit = Callable[[Seen, Each, int], Each]
"""Where to send the van, by what is seen, by a favourite district, and by the steps so far."""


def nearest(seen: Seen, favourite: Each, time: int) -> Each:
    """The nearest district where a call waits, the one where the van stands first."""
    del favourite, time
    place = np.argsort(STREET)
    far = np.abs(place[None] - place[seen[:, 3]][:, None])
    return np.where(seen[:, :3].any(axis=1), np.where(seen[:, :3] > 0, far, 9).argmin(axis=1), seen[:, 3])


def longest(seen: Seen, favourite: Each, time: int) -> Each:
    """The district where most calls wait at the moment."""
    del favourite, time
    return seen[:, :3].argmax(axis=1)


def rounds(seen: Seen, favourite: Each, time: int) -> Each:
    """A tour of the street, two steps for each place, whoever calls."""
    del seen
    return np.full_like(favourite, ROUND[time // 2 % len(ROUND)])


def loyal(seen: Seen, favourite: Each, time: int) -> Each:
    """One district all day long."""
    del seen, time
    return favourite


def central(seen: Seen, favourite: Each, time: int) -> Each:
    """The centre, unless nobody waits there and the favourite has as many calls as can wait."""
    del time
    full = seen[np.arange(len(seen)), favourite] == seen[:, :3].max(axis=1)
    return np.where((seen[:, CENTRE] == 0) & full, favourite, CENTRE)


HABITS: tuple[Habit, ...] = (nearest, longest, rounds, loyal, central)
"""Each shift has one dispatcher; each is as likely."""


def collect_dispatch(
    centre: Dispatch, episodes: int = SHIFTS, seed: int = 0, quality: str = "mixed"
) -> Episodes:
    """Shifts of the dispatchers; equal seeds give equal datasets."""
    if episodes < 1:
        raise InputError(f"at least one episode is needed, not {episodes}")
    if quality not in QUALITIES:
        raise InputError(f"unknown quality {quality!r}; known: {', '.join(QUALITIES)}")
    tables, rng = centre.tables(), np.random.default_rng(seed)
    lengths = rng.integers(centre.shortest, centre.horizon + 1, size=episodes)
    choose = _dispatchers(episodes, rng)
    states = np.zeros((episodes, centre.horizon + 1), dtype=np.int64)
    states[:, 0] = centre.start(lengths)
    actions = np.zeros((episodes, centre.horizon), dtype=np.int64)
    rewards = np.zeros((episodes, centre.horizon, len(DISTRICTS)))
    for t in range(centre.horizon):
        actions[:, t] = choose(tables.observations[states[:, t]], t)
        pairs = (states[:, t], actions[:, t])
        cumulative = np.cumsum(tables.probability[pairs], axis=1)
        drawn = np.argmax(cumulative > rng.random(episodes)[:, None] * cumulative[:, -1:], axis=1)
        states[:, t + 1], rewards[:, t] = tables.next_state[*pairs, drawn], tables.reward[*pairs, drawn]
    within = np.arange(centre.horizon + 1)[None]
    steps: Bool[np.ndarray, "n h"] = (within < lengths[:, None])[:, :-1]
    return Episodes(
        observations=tables.observations[states[within <= lengths[:, None]]],
        actions=actions[steps],
        rewards=rewards[steps],
        lengths=lengths,
        terminated=np.ones(episodes, dtype=bool),
        truncated=np.zeros(episodes, dtype=bool),
        objectives=centre.objectives,
    )


def _dispatchers(episodes: int, rng: np.random.Generator) -> Callable[[Seen, int], Each]:
    """A habit, a favourite and a share of random actions for each shift; a broken van is repaired."""
    habit, favourite = rng.integers(len(HABITS), size=episodes), rng.integers(len(DISTRICTS), size=episodes)
    exploration = rng.choice(EXPLORATION, episodes)

    def choose(seen: Seen, time: int) -> Each:
        sent = np.stack([each(seen, favourite, time) for each in HABITS])[habit, np.arange(episodes)]
        own = np.where(seen[:, 4] == BROKEN, REPAIR, sent)
        random = rng.integers(REPAIR + 1, size=episodes)
        return np.where(rng.random(episodes) < exploration, random, own)

    return choose
