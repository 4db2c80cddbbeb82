"""Cloning: a policy fitted to steps drawn in proportion to their weights; alone, behaviour cloning."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from aetdice.algorithms.base import Algorithm, Weighing
from aetdice.algorithms.optimiser import ADAM, cosine, descend
from aetdice.config import TrainingConfig
from aetdice.data.device import DeviceData, Steps
from aetdice.networks import Encoder, PolicyNetwork
from aetdice.objectives import Objective
from aetdice.objectives.parameters import Parameter, parameter


class CloningState(NamedTuple):
    """A policy and its optimiser."""

    policy: PolicyNetwork
    optimiser: optax.OptState


def init_cloning(policy: PolicyNetwork) -> CloningState:
    return CloningState(policy, ADAM.init(eqx.filter(policy, eqx.is_inexact_array)))


def cloning_loss(
    policy: PolicyNetwork,
    batch: Steps,
    weights: Float[Array, " batch"],
    courses: Int[Array, " batch"] | None = None,
) -> Float[Array, ""]:
    """-E[w log π(a|s̃)]: weighted cloning; w = 1 for steps drawn in proportion to their weights."""
    seen = (batch.observation, batch.accrued, batch.time, batch.action)
    fit = jax.vmap(policy.log_probability)(*seen, *([] if courses is None else [courses]))
    return -jnp.mean(weights * fit)


def drop_units(policy: PolicyNetwork, share: float, key: PRNGKeyArray) -> PolicyNetwork:
    """Dropout: the policy without a random share of its hidden units, the others raised to make up."""

    def drop(key: PRNGKeyArray, weight: Float[Array, "i o"]) -> Float[Array, "i o"]:
        kept = jax.random.bernoulli(key, 1 - share, (weight.shape[0], 1))
        return jnp.where(kept, weight / (1 - share), 0)

    into, *onward = policy.net.weights
    keys = jax.random.split(key, len(onward))
    weights = (into, *(drop(k, weight) for k, weight in zip(keys, onward, strict=True)))
    return eqx.tree_at(lambda p: p.net.weights, policy, weights)


def update_cloning(
    state: CloningState,
    batch: Steps,
    weights: Float[Array, " batch"],
    courses: Int[Array, " batch"] | None,
    learning_rate: Float[Array, ""],
    progress: Float[Array, ""],
    dropout: float,
    key: PRNGKeyArray,
) -> CloningState:
    """One step on the log-likelihood of a policy without some of its units."""

    def loss(policy: PolicyNetwork) -> Float[Array, ""]:
        shown = drop_units(policy, dropout, key) if dropout else policy
        return cloning_loss(shown, batch, weights, courses)

    gradient = eqx.filter_grad(loss)(state.policy)
    return CloningState(*descend(state.policy, gradient, state.optimiser, learning_rate * cosine(progress)))


class Cloning(Algorithm):
    """Nothing to value: a policy that does as the data did."""

    sees_accrued: bool = eqx.field(static=True)
    sees_time: bool = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    ends: bool = eqx.field(static=True)
    n_step: int = eqx.field(static=True)
    pools: bool = eqx.field(static=True)
    ignores: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, config: TrainingConfig) -> None:
        self.sees_accrued, self.sees_time, self.steps, self.ends = config.ablation.accrued, True, 0, True
        self.n_step, self.pools = 1, False
        self.ignores = (
            "dual", "iql", "reward", "network.value_fourier", "network.value_gain", "ablation.time",
            "ablation.offsets", "ablation.weighted_loss", "extraction.floor", "extraction.warm_up",
            "extraction.courses",
        )  # fmt: skip

    @property
    def sweeps(self) -> dict[str, float]:
        return {}

    @property
    def hints(self) -> None:
        return None

    def check(self, objective: Objective, objectives: int) -> None:
        del objective, objectives

    def hyper(self, objective: Objective, learning_rate: float, **own: float) -> Parameter:
        del objective, own
        return parameter(learning_rate)

    def init(self, encoder: Encoder, hyper: Any, data: DeviceData, key: PRNGKeyArray) -> Array:
        del encoder, hyper, data, key
        return jnp.zeros(0)

    def draw(self, key: PRNGKeyArray, data: DeviceData) -> tuple[()]:
        del key, data
        return ()

    def update(
        self, state: Array, hyper: Any, data: DeviceData, rows: tuple[()], step: Int[Array, ""]
    ) -> Array:
        del hyper, data, rows, step
        return state

    def finish(self, state: Array, hyper: Any, data: DeviceData) -> Array:
        del hyper, data
        return state

    def weigh(self, state: Array, hyper: Any, data: DeviceData) -> Weighing:
        del state, hyper
        return Weighing(data.behaviour, {})


def cloning(horizon: int, config: TrainingConfig) -> Cloning:
    """Behaviour cloning on augmented states."""
    del horizon
    return Cloning(config)
