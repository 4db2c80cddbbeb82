"""Episodes joined from recorded parts: the best ones, or random ones where transitions are stochastic.

The best are found by Frank-Wolfe over the returns of joined ways: what raises G(E[F(R)]) most at the best
mixture so far is kept, and joined again. That looks at returns, so it is for deterministic transitions
only: elsewhere it would collect lucky parts. Random joins look at nothing, and are left to the dual.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float, Int

from aetdice.data import Episodes
from aetdice.data.recombination import Joins, Recombination, Ways
from aetdice.exact.mixtures import best_mixture
from aetdice.exact.optimum import smooth
from aetdice.objectives import Objective, in_float64

ROUNDS = 6
"""At most so many joins in one episode."""
KEPT = 0.2
"""Ways that are kept from round to round and in the end, per recorded episode."""
LEAST_GAIN = 0.05
"""What joining must add, of what the best recorded episodes gain over the data, to be worth a try."""


CLOSE = 0.25
"""Median steps within which continuous states are joined by plans."""
RANDOM = 4
"""Episodes with random joins, per recorded one; and as many again that lean towards some actions."""
RANDOM_JOINS = 2


class Stitched(NamedTuple):
    """What the parts of recorded episodes hold."""

    episodes: Episodes | None
    """New ones, worth learning from for any of the objectives; None where recorded ones are as good."""
    possible: tuple[float, ...]
    """J of the best mixture of recorded and joined episodes, for each objective."""


class _Found(NamedTuple):
    """The same for one objective."""

    ways: Ways
    useful: bool


def stitch(episodes: Episodes, objectives: Sequence[Objective], horizon: int, seed: int) -> Stitched:
    """The best episodes that can be joined from parts, and what they and the recorded ones are worth."""
    parts = Recombination(episodes, horizon, np.random.default_rng(seed))
    found = [_stitch(parts, objective) for objective in objectives]
    useful = [parts.episodes_of(each.ways) for each in found if each.useful]
    planned = _planned_returns(episodes, horizon, seed)
    possible = (
        best_mixture(objective, np.concatenate([planned, parts.returns(each.ways)])).value
        for objective, each in zip(objectives, found, strict=True)
    )
    return Stitched(Episodes.joined(useful) if useful else None, tuple(possible))


def _planned_returns(episodes: Episodes, horizon: int, seed: int) -> Float[np.ndarray, "n m"]:
    """Returns of recorded episodes, and of those that are left anywhere for a plan.

    A plan may join at every step, so it joins only what is very near; policies do not learn such ways well,
    but know by them what is possible.
    """
    parts = Recombination(episodes, horizon, np.random.default_rng(seed), CLOSE)
    plans = (parts.plan(weights) for weights in _directions(episodes.returns))
    return np.concatenate([episodes.returns, *map(parts.planned_returns, plans)])


def join_at_random(episodes: Episodes, horizon: int, seed: int) -> Episodes | None:
    """Episodes with a join or two at random; None where no two episodes meet."""
    rng = np.random.default_rng(seed)
    parts = Recombination(episodes, horizon, rng)
    recorded = ways = parts.recorded
    for _ in range(RANDOM_JOINS):
        joins = parts.drawn(ways, 2 * RANDOM * len(recorded), rng)
        new = parts.follow(ways, joins)[: RANDOM * len(recorded)]
        ways = np.concatenate([recorded, new])
    if not len(new):
        return None
    return parts.episodes_of(np.concatenate([new, parts.tilted(RANDOM * len(recorded), rng)]))


def _stitch(parts: Recombination, objective: Objective) -> _Found:
    recorded = parts.recorded
    before = parts.returns(recorded)
    data, reached = float(in_float64(objective)(before)), best_mixture(objective, before).value
    count = max(1, round(KEPT * len(recorded)))
    pool = recorded[:0]
    for _ in range(ROUNDS):
        ways = np.concatenate([recorded, pool])
        worth = _worth(objective, np.concatenate([before, parts.returns(pool)]))
        best = [joins.take(_best(worth(joins.returns), joins.returns, count)) for joins in parts.joins(ways)]
        joins = Joins(*map(np.concatenate, zip(*best, strict=True)))
        new = parts.follow(ways, joins.take(_best(worth(joins.returns), joins.returns, count)))
        pool = np.concatenate([pool, new])
        returns = parts.returns(pool)
        pool = pool[_best(_worth(objective, np.concatenate([before, returns]))(returns), returns, count)]
    joined = best_mixture(objective, np.concatenate([before, parts.returns(pool)])).value
    return _Found(pool, joined - reached > LEAST_GAIN * (reached - data))


def _directions(returns: Float[np.ndarray, "n m"]) -> Float[np.ndarray, "plans m"]:
    """What is planned for: each objective alone, and all of them together."""
    count = returns.shape[1]
    return np.concatenate([np.eye(count), np.ones((1, count))]) / np.maximum(returns.std(axis=0), 1e-9)


def _worth(
    objective: Objective, returns: Float[np.ndarray, "n m"]
) -> Callable[[Float[np.ndarray, "k m"]], Float[np.ndarray, " k"]]:
    """μ·F(R), with μ = ∇G at the best mixture of these returns."""
    utility = in_float64(eqx.filter_jit(eqx.filter_vmap(objective.utility)))
    mixture = best_mixture(objective, returns)
    attained = mixture.probabilities @ np.asarray(utility(returns[mixture.rows]))
    slope = smooth(objective.aggregation)(attained)[1]
    return lambda each: np.asarray(utility(each)) @ slope


def _best(
    worth: Float[np.ndarray, " n"], returns: Float[np.ndarray, "n m"], count: int
) -> Int[np.ndarray, " k"]:
    """The worthiest, those of different returns first: many that are alike add nothing."""
    order = np.argsort(-worth, kind="stable")[: 50 * count]
    _, kind = np.unique(returns[order].round(6), axis=0, return_inverse=True)
    by_kind, counts = np.argsort(kind, kind="stable"), np.bincount(kind)
    turn = np.empty(len(kind), int)
    turn[by_kind] = np.arange(len(kind)) - np.repeat(np.cumsum(counts) - counts, counts)
    return order[np.lexsort([np.arange(len(kind)), turn])][:count]
