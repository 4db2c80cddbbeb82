"""Episodes joined from recorded parts, where they are better for an objective than recorded ones.

Generations of new episodes are recombined from those before, the better ones more often. That looks at
returns, so it is for deterministic transitions only: elsewhere it would collect lucky parts.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from aetdice.data import Episodes
from aetdice.data.recombination import recombine
from aetdice.exact.episode_weights import weights_of_size
from aetdice.exact.mixtures import best_mixture
from aetdice.objectives import Objective, in_float64

GENERATIONS = 8
CHILDREN = 2.0
"""New episodes of a generation, per recorded one."""
PARENTS = 0.05
"""Share of the episodes that most parts come from."""
EXPLORED = 0.3
"""Share of the parts that come from any episode."""
KEPT = 0.2
"""New episodes that are kept, per recorded one."""
LEAST_GAIN = 0.01
"""What joining must add, of what the best recorded episodes gain over the data."""


def stitch(episodes: Episodes, objectives: Sequence[Objective], horizon: int, seed: int) -> Episodes | None:
    """New episodes worth learning from, for any of the objectives; None where recorded ones are as good."""
    found = [_stitch(episodes, objective, horizon, np.random.default_rng(seed)) for objective in objectives]
    useful = [new for new in found if new is not None]
    return Episodes.joined(useful) if useful else None


def _stitch(
    episodes: Episodes, objective: Objective, horizon: int, rng: np.random.Generator
) -> Episodes | None:
    children = round(CHILDREN * len(episodes))
    pool = episodes
    for _ in range(GENERATIONS):
        ratios = weights_of_size(objective, pool.returns, PARENTS).ratios
        preference = (1 - EXPLORED) * ratios / ratios.sum() + EXPLORED / len(ratios)
        new = recombine(pool, children, horizon, rng, preference)
        pool = Episodes.joined([episodes, _best(Episodes.joined([pool, new]), objective, children)])
    data = float(in_float64(objective)(episodes.returns))
    recorded, joined = (best_mixture(objective, each.returns).value for each in (episodes, pool))
    if joined - recorded <= LEAST_GAIN * (recorded - data):
        return None
    return _best(pool, objective, max(1, round(KEPT * len(episodes))))


def _best(pool: Episodes, objective: Objective, count: int) -> Episodes:
    """Episodes of different returns first: many that are alike add nothing."""
    order = np.argsort(-weights_of_size(objective, pool.returns, PARENTS).ratios, kind="stable")
    return pool.select(_in_turns(pool.returns[order], order)[:count])


def _in_turns(returns: np.ndarray, order: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """First one episode of every return, then a second of every return, and so on."""
    _, kind = np.unique(returns.round(6), axis=0, return_inverse=True)
    by_kind = np.argsort(kind, kind="stable")
    counts = np.bincount(kind)
    turn = np.empty(len(kind), int)
    turn[by_kind] = np.arange(len(kind)) - np.repeat(np.cumsum(counts) - counts, counts)
    return order[np.lexsort([np.arange(len(kind)), turn])]
