"""A roundabout of four places: drive on, or leave. How a recording ends is told by its labels alone."""

import numpy as np

from aetdice import Episode, Episodes

PLACES, LIMIT = 4, 5
ON, LEAVE = 0, 1
REWARDS = np.array(
    [[[1.0, 0.0], [2.0, 3.0]], [[0.0, 1.0], [4.0, 0.0]], [[1.0, 2.0], [0.0, 2.0]], [[2.0, 1.0], [3.0, 3.0]]]
)
"""Of every place and action. Whoever leaves is seen at place 0, as if nothing had ended."""


def roundabout(seed: int, *, leaving: bool = True, limit: bool = False) -> Episodes:
    """250 episodes of 1000 steps: 100 drivers leave before the time limit, some of the others at it.

    `leaving` labels those who left as terminated, `limit` those whom the time limit stopped; what
    is not terminated is truncated. Equal seeds give equal numbers, whatever the labels.
    """
    rng = np.random.default_rng(seed)
    episodes = []
    for length in np.repeat(np.arange(1, 6), [25, 25, 25, 25, 150]):
        leaves = length < LIMIT or rng.random() < 0.3
        actions = np.full(length, ON)
        actions[-1] = LEAVE if leaves else ON
        places = (rng.integers(PLACES) + np.arange(length + 1)) % PLACES
        places[-1] = 0 if leaves else places[-1]
        ended = leaving if leaves else limit
        rewards = REWARDS[places[:-1], actions]
        episodes.append(Episode(places[:, None], actions, rewards, ended, not ended))
    return Episodes.from_list(episodes)


def discounted_returns(
    table: np.ndarray, starts: np.ndarray, gamma: float, *, leaving: bool = True
) -> np.ndarray:
    """Expected discounted returns of π(a|place), by solving V = r + γPV."""
    onwards = np.roll(np.eye(PLACES), 1, axis=1)
    home = np.zeros((PLACES, PLACES)) if leaving else np.tile(np.eye(PLACES)[0], (PLACES, 1))
    following = table[:, [ON]] * onwards + table[:, [LEAVE]] * home
    expected = np.einsum("sa,sam->sm", table, REWARDS)
    return starts @ np.linalg.solve(np.eye(PLACES) - gamma * following, expected)
