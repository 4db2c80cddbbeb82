"""Episodes joined from recorded parts, where they are better for an objective than recorded ones.

Generations of new episodes are recombined from those before, the better ones more often. That looks at
returns, so it is for deterministic transitions only: elsewhere it would collect lucky parts.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from aetdice.data import Episodes
from aetdice.data.recombination import Recombination, Ways
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
LEAST_GAIN = 0.1
"""What joining must add, of what the best recorded episodes gain over the data: joins are not exact."""


def stitch(episodes: Episodes, objectives: Sequence[Objective], horizon: int, seed: int) -> Episodes | None:
    """New episodes worth learning from, for any of the objectives; None where recorded ones are as good."""
    parts = Recombination(episodes, horizon)
    found = [_stitch(parts, objective, np.random.default_rng(seed)) for objective in objectives]
    useful = [parts.episodes_of(ways) for ways in found if ways is not None]
    return Episodes.joined(useful) if useful else None


def _stitch(parts: Recombination, objective: Objective, rng: np.random.Generator) -> Ways | None:
    recorded = pool = parts.recorded
    children = round(CHILDREN * len(recorded))
    for _ in range(GENERATIONS):
        ratios = weights_of_size(objective, parts.returns(pool), PARENTS).ratios
        preference = (1 - EXPLORED) * ratios / ratios.sum() + EXPLORED / len(ratios)
        every = np.concatenate([pool, parts.recombine(pool, preference, children, rng)])
        pool = np.concatenate([recorded, every[_best(parts.returns(every), objective, children)]])
    before, after = (parts.returns(ways) for ways in (recorded, pool))
    data = float(in_float64(objective)(before))
    reached, joined = (best_mixture(objective, returns).value for returns in (before, after))
    if joined - reached <= LEAST_GAIN * (reached - data):
        return None
    return pool[_best(after, objective, max(1, round(KEPT * len(recorded))))]


def _best(returns: Float[np.ndarray, "n m"], objective: Objective, count: int) -> Int[np.ndarray, " k"]:
    """The heaviest, those of different returns first: many that are alike add nothing."""
    order = np.argsort(-weights_of_size(objective, returns, PARENTS).ratios, kind="stable")
    _, kind = np.unique(returns[order].round(6), axis=0, return_inverse=True)
    by_kind, counts = np.argsort(kind, kind="stable"), np.bincount(kind)
    turn = np.empty(len(kind), int)
    turn[by_kind] = np.arange(len(kind)) - np.repeat(np.cumsum(counts) - counts, counts)
    return order[np.lexsort([np.arange(len(kind)), turn])][:count]
