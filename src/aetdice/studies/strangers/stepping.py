"""Our tables against the real environments, by stepping these from every state."""

from typing import Any

import numpy as np

from aetdice.exact import TabularMOMDP
from aetdice.studies.strangers.mo_gym_tables import MoGymTable

CERTAIN = 2
"""Steps where the table leaves nothing to chance."""


def outcomes_of(momdp: TabularMOMDP, state: int, action: int) -> dict[tuple[Any, ...], float]:
    """The probability of every outcome, as an environment tells of it."""
    found: dict[tuple[Any, ...], float] = {}
    for k in np.flatnonzero(momdp.probability[state, action]):
        there = momdp.next_state[state, action, k]
        ends = bool(momdp.terminal[there])
        key = _told(momdp.observations[there], ends, momdp.reward[state, action, k])
        found[key] = found.get(key, 0.0) + float(momdp.probability[state, action, k])
    return found


def worst_deviation(table: MoGymTable, draws: int = 1_000, states: int | None = None) -> float:
    """The largest deviation of a frequency from its probability, in sigmas; inf for what cannot be.

    Steps are from every state of the table, or from so many of them.
    """
    env, momdp = table.make(), table.momdp()
    env.reset(seed=0)
    inner: Any = env.unwrapped
    live = np.flatnonzero(~momdp.terminal & _is_entered(momdp))
    if states is not None:
        live = np.random.default_rng(0).permutation(live)[:states]
    worst = 0.0
    for state in live:
        for action in range(momdp.actions):
            chances = outcomes_of(momdp, int(state), action)
            counts = dict.fromkeys(chances, 0)
            size = draws if len(chances) > 1 else CERTAIN
            for _ in range(size):
                table.place(inner, momdp.observations[state])
                observation, reward, ends, _, _ = inner.step(action)
                told = _told(_flat(observation), bool(ends), reward)
                if told not in counts:
                    return float("inf")
                counts[told] += 1
            for told, chance in chances.items():
                sigma = np.sqrt(chance * (1 - chance) / size)
                if sigma > 0:
                    worst = max(worst, float(abs(counts[told] / size - chance) / sigma))
    return worst


def _is_entered(momdp: TabularMOMDP) -> Any:
    """States that are left within the horizon; the table does not follow the others."""
    goes_on = np.any(momdp.next_state != np.arange(momdp.states)[:, None, None], axis=(1, 2))
    return goes_on | (momdp.initial > 0)


def _flat(observation: Any) -> list[int]:
    """The entries of an observation; those of a dictionary in their order."""
    parts = observation.values() if isinstance(observation, dict) else [observation]
    return [int(entry) for part in parts for entry in np.atleast_1d(part)]


def _told(observation: Any, ends: bool, reward: Any) -> tuple[Any, ...]:
    rewards = (float(np.float32(entry)) for entry in reward)  # as MO-Gymnasium has them
    return (*(int(entry) for entry in observation), ends, *rewards)
