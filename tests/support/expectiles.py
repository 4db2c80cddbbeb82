"""Implicit Q-learning by dynamic programming on a dataset's own augmented states; no networks."""

from collections import Counter, defaultdict
from collections.abc import Callable

import numpy as np
import scipy.optimize

from aetdice import Episodes

Node = tuple[float, ...]
"""Observation, accrued reward and time."""


def expectile(values: np.ndarray, weights: np.ndarray, tau: float) -> float:
    """The v with Σ w |τ - 1(q < v)| (q - v) = 0."""
    low, high = values.min(), values.max()
    if high - low < 1e-12:
        return float(low)

    def slope(v: float) -> float:
        return float(np.sum(weights * np.where(values < v, 1 - tau, tau) * (values - v)))

    return float(scipy.optimize.brentq(slope, low, high, xtol=1e-12))


def fixed_point(
    episodes: Episodes, utility: Callable[[np.ndarray], float], tau: float
) -> tuple[dict[Node, float], dict[tuple[Node, int], float], Counter]:
    """V and Q of every recorded augmented state and action, backwards in time, and their counts.

    V(s̃) is the τ-expectile of Q(s̃, ·) over the recorded actions, Q = r̃ + E[V(s̃')] over what was
    recorded to follow; nothing follows termination or the longest episode's last step.
    """
    horizon = int(episodes.lengths.max())
    follows: dict[tuple[Node, int], list[tuple[float, Node | None]]] = defaultdict(list)
    for episode in episodes:
        accrued = np.zeros(episodes.rewards.shape[1])
        for time, (action, reward) in enumerate(zip(episode.actions, episode.rewards, strict=True)):
            before, accrued = accrued, accrued + reward
            here = (*episode.observations[time].tolist(), *before.tolist(), time)
            there = (*episode.observations[time + 1].tolist(), *accrued.tolist(), time + 1)
            ended = time + 1 == horizon or (episode.terminated and time + 1 == len(episode.rewards))
            follows[here, int(action)].append((utility(accrued) - utility(before), None if ended else there))
    q: dict[tuple[Node, int], float] = {}
    v: dict[Node, float] = {}
    for time in reversed(range(horizon)):
        pairs = [pair for pair in follows if pair[0][-1] == time]
        for pair in pairs:
            q[pair] = float(np.mean([gain + (v[after] if after else 0) for gain, after in follows[pair]]))
        for node in {pair[0] for pair in pairs}:
            own = [pair for pair in pairs if pair[0] == node]
            counts = np.array([len(follows[pair]) for pair in own])
            v[node] = expectile(np.array([q[pair] for pair in own]), counts, tau)
    return v, q, Counter({pair: len(steps) for pair, steps in follows.items()})
