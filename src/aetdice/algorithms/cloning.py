"""Cloning: a policy fitted to steps drawn in proportion to their weights; alone, behaviour cloning."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, Shaped

from aetdice.algorithms.base import Weighing, WithoutUpdates
from aetdice.algorithms.optimiser import Moments, Pace, descend, no_moments
from aetdice.config import TrainingConfig
from aetdice.data.device import DeviceData, Steps
from aetdice.networks import Encoder, Kept, Perceptron, PolicyNetwork, products_are_rounded
from aetdice.objectives import Objective
from aetdice.objectives.parameters import Parameter, parameter


class CloningState(NamedTuple):
    """A policy, and the moments of its gradient."""

    policy: PolicyNetwork
    moments: Moments


class CloningBatch(NamedTuple):
    """What an update needs of its rows and of its number: nothing in it changes with the policy."""

    encoded: Float[Array, "batch f"]
    action: Shaped[Array, "batch ..."]
    counts: Float[Array, " batch"]
    kept: Kept
    """Dropout: the units that stay, raised to make up for the others."""
    pace: Pace


def init_cloning(policy: PolicyNetwork) -> CloningState:
    return CloningState(policy, no_moments(policy.net))


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


def prepare_cloning(
    policy: PolicyNetwork,
    batch: Steps,
    counts: Float[Array, " batch"],
    courses: Int[Array, " batch"] | None,
    pace: Pace,
    dropout: float,
    key: PRNGKeyArray,
) -> CloningBatch:
    """The rows of an update, encoded; a random share of the hidden units is left out of it."""
    seen = (batch.observation, batch.accrued, batch.time, *([] if courses is None else [courses]))
    widths = [bias.shape[0] for bias in policy.net.biases[:-1]] if dropout else []
    kept = tuple(
        jax.random.bernoulli(k, 1 - dropout, (width,)).astype(jnp.float32) / (1 - dropout)
        for k, width in zip(jax.random.split(key, max(1, len(widths))), widths, strict=False)
    )
    encoded = jax.vmap(policy.encoded)(*seen)
    rounded = encoded.astype(jnp.bfloat16) if products_are_rounded() else encoded
    return CloningBatch(rounded, batch.action, counts, kept, pace)


def update_cloning(state: CloningState, batch: CloningBatch) -> CloningState:
    """One step on the log-likelihood."""
    policy = state.policy

    def loss(net: Perceptron) -> Float[Array, ""]:
        outputs = net(batch.encoded, batch.kept)
        return -jnp.mean(batch.counts * jax.vmap(policy.head.log_probability)(outputs, batch.action))

    net, moments = descend(policy.net, jax.grad(loss)(policy.net), state.moments, batch.pace)
    return CloningState(eqx.tree_at(lambda p: p.net, policy, net), moments)


class Cloning(WithoutUpdates):
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
