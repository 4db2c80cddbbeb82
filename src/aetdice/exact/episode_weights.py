"""Weights of whole episodes: p* = argmax_p G(Σ p_i F(R_i)) - β D_φ(p‖d), exactly.

It is the DICE dual of a problem in which every episode is one step: ν is a single constant, and
with w_i = p_i / d_i the optimum is w = max(0, (φ')⁻¹((μ·(F(R) - F(0)) - ν)/β)), μ = ∇G(k).
"""

from typing import NamedTuple

import equinox as eqx
import numpy as np
import scipy.sparse as sp
from jaxtyping import Float

from aetdice.dice import FiniteHorizon
from aetdice.errors import InputError
from aetdice.exact.differences import SparseDifferences
from aetdice.exact.mixtures import best_mixture
from aetdice.exact.newton import LinearDual, minimise_dual
from aetdice.objectives import ChiSquare, Divergence, Objective, in_float64

FIRST_BETA, FALL, FALLS = 1e2, 10.0, 12
"""β falls from so many times the spread of the values by such factors, at most so often."""
TOLERANCE = 1e-3
"""Of a sample size, relative."""
OPTIMAL = 1e-6
"""Of the spread of the values: so near to the best mixture a smaller β changes nothing."""


class EpisodeWeights(NamedTuple):
    """The solution, and what says how another episode would be weighed."""

    ratios: Float[np.ndarray, " episodes"]
    """w = p / d of every episode."""
    constant: float
    """ν."""
    slack: Float[np.ndarray, " n"]
    """k = Σ p F(R): the utilities attained."""
    beta: float
    sample_size: float
    """(Σ d w)² / Σ d w²: the share of the episodes that the weights rest on."""


def episode_weights(
    objective: Objective,
    returns: Float[np.ndarray, "episodes m"],
    beta: float,
    divergence: Divergence | None = None,
    mass: Float[np.ndarray, " episodes"] | None = None,
    start: EpisodeWeights | None = None,
) -> EpisodeWeights:
    """The best weights of recorded episodes, `mass` being d, by default 1/N each."""
    count = len(returns)
    mass = np.full(count, 1 / count) if mass is None else mass
    utilities = np.asarray(in_float64(eqx.filter_vmap(objective.utility))(returns))
    zero = np.asarray(in_float64(objective.utility)(np.zeros(returns.shape[1])))
    dual = LinearDual(
        differences=SparseDifferences(sp.csr_array(-np.ones((count, 1)))),
        initial=np.ones(1),
        mass=mass,
        rewards=utilities - zero,
        zero_utility=zero,
        aggregation=objective.aggregation,
        divergence=divergence or ChiSquare(),
        flow=FiniteHorizon(1),
    )
    first = (np.zeros(1), mass @ utilities) if start is None else (np.array([start.constant]), start.slack)
    point = minimise_dual(dual, beta, *first, anneal=start is None)
    size = np.sum(mass * point.ratio) ** 2 / np.sum(mass * point.ratio**2)
    return EpisodeWeights(point.ratio, float(point.parameters[0]), point.slack, beta, float(size))


def weights_of_size(
    objective: Objective,
    returns: Float[np.ndarray, "episodes m"],
    sample_size: float,
    divergence: Divergence | None = None,
    mass: Float[np.ndarray, " episodes"] | None = None,
) -> EpisodeWeights:
    """The best weights that rest on this share of the episodes: β is searched for, as the size grows with it.

    Where even the unregularised optimum rests on more episodes, that is the answer.
    """
    if not 0 < sample_size <= 1:
        raise InputError(f"sample_size is a share of the episodes above 0 and at most 1, not {sample_size}")
    values = np.asarray(in_float64(eqx.filter_vmap(lambda r: objective(r[None])))(returns))
    spread = float(np.ptp(values)) or 1.0
    best = best_mixture(objective, returns if mass is None else returns[mass > 0]).value
    beta = FIRST_BETA * spread
    above = below = episode_weights(objective, returns, beta, divergence, mass)
    for _ in range(FALLS):
        above, beta = below, beta / FALL
        below = episode_weights(objective, returns, beta, divergence, mass, start=above)
        if below.sample_size <= sample_size:
            break
        if float(in_float64(objective.aggregation)(below.slack)) > best - OPTIMAL * spread:
            return below
    while below.sample_size < (1 - TOLERANCE) * sample_size and above.beta > (1 + TOLERANCE) * below.beta:
        middle = float(np.sqrt(above.beta * below.beta))
        found = episode_weights(objective, returns, middle, divergence, mass, start=above)
        above, below = (above, found) if found.sample_size <= sample_size else (found, below)
    return below
