"""The Fair-Taxi datasets: `mixed` has policies that take turns, `shifts` drivers who each know one group."""

import itertools
from collections.abc import Callable

import numpy as np

from aetdice.data import Episodes
from aetdice.envs.environment import Tables
from aetdice.envs.fair_taxi.driving import Choose, greedy_policies, record
from aetdice.envs.fair_taxi.taxi import MOVES, FairTaxi
from aetdice.errors import InputError

EPISODES = 2000
RESOLUTION = 4
"""Weights are all multiples of 1/4 on the simplex, in units of a delivery."""
INTERVALS = (10, 25, 50)
"""Steps between changes of policy; each episode keeps one of them."""
EXPLORATION = (0.0, 0.05, 0.1, 0.2, 0.4)
"""Probability of a random action; each episode keeps one of them."""
SHIFT_EXPLORATION = (0.0, 0.05, 0.1)
"""Probability of a random move on duty; each episode keeps one of them."""


def mixed(taxi: FairTaxi, tables: Tables, episodes: int, rng: np.random.Generator) -> Choose:
    """Tabular Q policies for several linear weights take turns; every interval one is drawn anew."""
    corners = itertools.product(range(RESOLUTION + 1), repeat=len(taxi.origins))
    shares = np.array([c for c in corners if sum(c) == RESOLUTION]) / RESOLUTION
    policies = greedy_policies(taxi, tables, shares)
    interval, exploration = rng.choice(INTERVALS, episodes), rng.choice(EXPLORATION, episodes)
    chosen = np.zeros(episodes, dtype=np.int64)

    def choose(t: int, states: np.ndarray) -> np.ndarray:
        nonlocal chosen
        fresh = rng.integers(len(policies), size=episodes)
        chosen = np.where(t % interval == 0, fresh, chosen)
        explores = rng.random(episodes) < exploration
        random = rng.integers(taxi.actions, size=episodes)
        return np.where(explores, random, policies[chosen, states])

    return choose


def shifts(taxi: FairTaxi, tables: Tables, episodes: int, rng: np.random.Generator) -> Choose:
    """Each driver serves one group in one half of the episode, and moves at random in the other.

    Random actions are moves, on duty too: nobody of another group is ever picked up, nothing is done
    wrong, and a passenger who is on board when a shift ends stays there. So all that an episode
    earns, it earns for one group in one shift.
    """
    policies = greedy_policies(taxi, tables, np.eye(len(taxi.origins)))
    group, second = rng.integers(len(policies), size=episodes), rng.random(episodes) < 0.5
    exploration = rng.choice(SHIFT_EXPLORATION, episodes)

    def choose(t: int, states: np.ndarray) -> np.ndarray:
        wanders = second != (t >= taxi.horizon // 2)
        explores = rng.random(episodes) < exploration
        random = rng.integers(len(MOVES), size=episodes)
        return np.where(wanders | explores, random, policies[group, states])

    return choose


QUALITIES: dict[str, Callable[[FairTaxi, Tables, int, np.random.Generator], Choose]] = {
    "mixed": mixed,
    "shifts": shifts,
}
"""By the dataset's quality, what makes the drivers of its episodes."""


def collect_fair_taxi(
    taxi: FairTaxi, episodes: int = EPISODES, seed: int = 0, quality: str = "mixed"
) -> Episodes:
    """Episodes of a quality's drivers; equal seeds give equal datasets."""
    if episodes < 1:
        raise InputError(f"at least one episode is needed, not {episodes}")
    if quality not in QUALITIES:
        raise InputError(f"unknown quality {quality!r}; known: {', '.join(QUALITIES)}")
    tables, rng = taxi.tables(), np.random.default_rng(seed)
    return record(taxi, tables, QUALITIES[quality](taxi, tables, episodes, rng), episodes, rng)
