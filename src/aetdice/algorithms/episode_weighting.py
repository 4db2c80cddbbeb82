"""Episode-weighted cloning: whole episodes are weighed by a convex program, then cloned.

    p* = argmax_p G(Σ_i p_i F(R_i)) - β D_φ(p‖d)

No ν, no bootstrapping: the DICE dual with one constant, in which every episode is a single step. It
is the end n = H of n-step residuals. It cannot stitch parts of episodes together, and where
transitions are stochastic it rewards luck.
"""

import dataclasses
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from aetdice.algorithms.base import Hints, Weighing, WithoutUpdates
from aetdice.config import DualConfig, TrainingConfig
from aetdice.data.device import DeviceData
from aetdice.errors import InputError
from aetdice.exact.episode_weights import weights_of_size
from aetdice.exact.mixtures import best_mixture
from aetdice.networks import Encoder
from aetdice.objectives import DIVERGENCES, Divergence, Objective, in_float64, multiplier
from aetdice.objectives.parameters import Parameter, parameter

SAMPLE_SIZE = 0.005
"""Share of the recorded episodes: the smaller, the better they are, and the fewer to learn from."""
LEAST_EPISODES = 5
"""That weights must rest on, in effect, to be trusted."""


class EpisodeHyper(eqx.Module):
    """What may differ between the members of a population."""

    objective: Objective
    sample_size: Parameter = eqx.field(converter=parameter)
    joins: Parameter = eqx.field(converter=parameter)
    """1 if episodes joined from recorded parts are weighed beside recorded ones, 0 if they are left out."""


class EpisodeState(NamedTuple):
    """What says how an episode is weighed: w = max(0, (φ')⁻¹((μ·(F(R) - F(0)) - ν)/β)), μ = ∇G(k)."""

    constant: Float[Array, ""]
    """ν."""
    slack: Float[Array, " n"]
    """k."""
    beta: Float[Array, ""]
    mixture: Float[Array, "courses n"]
    """F(R) of the episodes that the best mixture draws, one per course of the policy."""


class EpisodeWeighting(WithoutUpdates):
    """Weights of whole episodes that rest on a given share of them."""

    divergence: Divergence
    joins: bool = eqx.field(static=True)
    """Whether members may leave joined episodes out."""
    courses: int = eqx.field(static=True)
    sees_accrued: bool = eqx.field(static=True)
    sees_time: bool = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    ends: bool = eqx.field(static=True)
    n_step: int = eqx.field(static=True)
    pools: bool = eqx.field(static=True)
    ignores: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, horizon: int, config: TrainingConfig, joins: bool = False) -> None:
        self.divergence, self.joins = DIVERGENCES[config.dual.divergence](), joins
        self.courses = config.extraction.courses
        self.sees_accrued, self.sees_time, self.steps, self.ends = config.ablation.accrued, True, 0, True
        dual = [field.name for field in dataclasses.fields(DualConfig) if field.name != "divergence"]
        self.n_step, self.pools = horizon, True
        self.ignores = (
            *(f"dual.{name}" for name in dual), "iql", "reward", "network.value_fourier",
            "network.value_gain", "ablation.time", "ablation.offsets",
        )  # fmt: skip

    @property
    def sweeps(self) -> dict[str, float]:
        return {"sample_size": SAMPLE_SIZE, **({"joins": 1.0} if self.joins else {})}

    @property
    def hints(self) -> Hints:
        return Hints("a smaller sample_size", "a larger sample_size")

    def check(self, objective: Objective, objectives: int) -> None:
        del objective, objectives

    def hyper(self, objective: Objective, learning_rate: float, **own: float) -> EpisodeHyper:
        del learning_rate
        if not 0 < own["sample_size"] <= 1:
            raise InputError(f"sample_size is a share above 0 and at most 1, not {own['sample_size']}")
        return EpisodeHyper(objective, own["sample_size"], own.get("joins", 1.0))

    def init(
        self, encoder: Encoder, hyper: EpisodeHyper, data: DeviceData, key: PRNGKeyArray
    ) -> EpisodeState:
        """Before the program is solved all episodes weigh alike."""
        del encoder, key
        utilities = jax.vmap(hyper.objective.utility)(data.segmented.steps.next_accrued)
        mean = jnp.mean(utilities, axis=0)
        courses = jnp.broadcast_to(mean, (self.courses, mean.shape[0]))
        return EpisodeState(jnp.zeros(()), mean, jnp.asarray(1e30), courses)

    def finish(self, state: EpisodeState, hyper: EpisodeHyper, data: DeviceData) -> EpisodeState:
        """Solve the convex program, in float64; never for hardly more than the fewest episodes to trust."""
        del state
        of_all = data.segmented.steps.next_accrued, _mass(data, hyper)
        returns, mass = (np.asarray(each, np.float64) for each in of_all)
        recorded = int(np.sum(np.asarray(data.initial) < data.recorded))  # the others may be of no use here
        count = max(float(hyper.sample_size) * recorded, LEAST_EPISODES + 1)
        size = min(1.0, count / np.count_nonzero(mass))
        solved = weights_of_size(hyper.objective, returns, size, self.divergence, mass / mass.sum())
        found = (
            solved.constant,
            solved.slack,
            solved.beta,
            self._mixture(hyper.objective, returns[mass > 0]),
        )
        return EpisodeState(*(jnp.asarray(each, jnp.float32) for each in found))

    def _mixture(
        self, objective: Objective, returns: Float[np.ndarray, "episodes m"]
    ) -> Float[np.ndarray, "courses n"]:
        """The best mixture's episodes, the likeliest first and, where they are fewer than courses, again."""
        best = best_mixture(objective, returns)
        rows = best.rows[np.argsort(-best.probabilities)][: self.courses]
        utilities = np.asarray(in_float64(eqx.filter_vmap(objective.utility))(returns[rows]))
        return np.concatenate([utilities, np.repeat(utilities[:1], self.courses - len(rows), axis=0)])

    def weigh(self, state: EpisodeState, hyper: EpisodeHyper, data: DeviceData) -> Weighing:
        utility, aggregation = hyper.objective.utility, hyper.objective.aggregation
        episodes = data.segmented.steps
        utilities, mass = jax.vmap(utility)(episodes.next_accrued), _mass(data, hyper)
        zero, mu = utility(jnp.zeros_like(episodes.accrued[0])), multiplier(aggregation, state.slack)
        w = self.divergence.ratio(((utilities - zero[None]) @ mu - state.constant) / state.beta)
        shares = mass * w
        weights = data.onto_steps(shares)
        metrics = {
            "effective_episodes": _effective(mass, w) * jnp.sum(mass > 0, dtype=mass.dtype),
            "stochastic_share": _stochastic_share(data),
            "joined_share": jnp.sum(weights[data.recorded :]) / (jnp.sum(weights) + 1e-30),
            "zero_share": jnp.mean(w <= 0),
            "claimed_value": aggregation(shares @ utilities / (jnp.sum(shares) + 1e-30)),
            "beta": state.beta,
            "multiplier": mu,
        }
        return Weighing(weights, metrics, self._courses(state, mu, utilities, data))

    def _courses(
        self,
        state: EpisodeState,
        mu: Float[Array, " n"],
        utilities: Float[Array, "episodes n"],
        data: DeviceData,
    ) -> Int[Array, " steps"]:
        """An episode's course is that of the mixture's episode nearest to it, in what counts for J."""
        apart = mu[None, None] * (utilities[:, None] - state.mixture[None])
        course, segment = jnp.argmin(jnp.sum(apart**2, axis=2), axis=1), data.segments
        return course if segment is None else course[segment.of_step]


def _mass(data: DeviceData, hyper: EpisodeHyper) -> Float[Array, " episodes"]:
    """d of every episode that may be weighed."""
    weight = data.segmented.steps.weight
    if data.recorded == data.steps.count:
        return weight
    first = data.recorded if data.segments is None else data.segments.of_step[data.recorded]
    joined = jnp.arange(weight.shape[0]) >= first
    return jnp.where(joined & (hyper.joins == 0), 0, weight)


def _effective(mass: Float[Array, " episodes"], w: Float[Array, " episodes"]) -> Float[Array, ""]:
    """(Σ d w)² / Σ d w²: the share of the episodes that the weights rest on."""
    return jnp.sum(mass * w) ** 2 / (jnp.sum(mass) * jnp.sum(mass * w**2) + 1e-30)


def _stochastic_share(data: DeviceData) -> Float[Array, ""]:
    """The share of the steps after which something else might have followed."""
    if data.steps.successors is None:
        return jnp.zeros(())
    return jnp.mean(jnp.max(data.steps.successors.probability, axis=1) < 1)


def episode_weighting(horizon: int, config: TrainingConfig, joins: bool = False) -> EpisodeWeighting:
    """Any F and concave G, by weighing whole episodes."""
    return EpisodeWeighting(horizon, config, joins)
