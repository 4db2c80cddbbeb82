"""The learner's networks: a Gaussian policy and a vector of values, both told the preference."""

import itertools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

FARTHEST = 10.0
"""Standardised observations are clipped to ± this."""


class Layers(eqx.Module):
    """Linear layers with tanh between them."""

    weights: tuple[Float[Array, "i o"], ...]
    biases: tuple[Float[Array, " o"], ...]

    def __init__(self, sizes: tuple[int, ...], last_scale: float, key: PRNGKeyArray) -> None:
        fans = list(itertools.pairwise(sizes))
        scales = [*(math.sqrt(2) for _ in fans[:-1]), last_scale]
        keys = jax.random.split(key, len(fans))
        self.weights = tuple(
            jax.nn.initializers.orthogonal(scale)(k, fan, jnp.float32)
            for scale, k, fan in zip(scales, keys, fans, strict=True)
        )
        self.biases = tuple(jnp.zeros(fan[1], jnp.float32) for fan in fans)

    def __call__(self, x: Float[Array, " i"]) -> Float[Array, " o"]:
        *hidden, last = zip(self.weights, self.biases, strict=True)
        for weight, bias in hidden:
            x = jnp.tanh(_product(x, weight) + bias)
        return _product(x, last[0]) + last[1]


def _product(x: Float[Array, " i"], weight: Float[Array, "i o"]) -> Float[Array, " o"]:
    """In full float32: what acts later, without an accelerator, is the policy that was trained."""
    return jnp.matmul(x, weight, precision=jax.lax.Precision.HIGHEST)


class Agent(eqx.Module):
    """π(a | s, w) = N(actor, std²) in units of the action limits, and V(s, w) per objective."""

    actor: Layers
    critic: Layers
    log_excess: Float[Array, " a"]
    """log(std - smallest std)."""
    smallest_std: float = eqx.field(static=True)

    @property
    def std(self) -> Float[Array, " a"]:
        return self.smallest_std + jnp.exp(self.log_excess)

    def log_probability(self, features: Float[Array, " f"], action: Float[Array, " a"]) -> Float[Array, ""]:
        z = (action - self.actor(features)) / self.std
        return jnp.sum(-0.5 * jnp.square(z) - jnp.log(self.std) - 0.5 * math.log(2 * math.pi))


def init_agent(
    features: int,
    actions: int,
    objectives: int,
    hidden: tuple[int, ...],
    stds: tuple[float, float],
    key: PRNGKeyArray,
) -> Agent:
    """`stds` are the first and the smallest standard deviation."""
    actor, critic = jax.random.split(key)
    first, smallest = stds
    return Agent(
        actor=Layers((features, *hidden, actions), 0.01, actor),
        critic=Layers((features, *hidden, objectives), 1.0, critic),
        log_excess=jnp.full(actions, math.log(first - smallest), jnp.float32),
        smallest_std=smallest,
    )


def encode(
    observation: Float[Array, " o"],
    preference: Float[Array, " m"],
    centre: Float[Array, " o"],
    spread: Float[Array, " o"],
) -> Float[Array, " f"]:
    """The standardised observation, then the preference from -1 to 1."""
    seen = jnp.clip((observation - centre) / spread, -FARTHEST, FARTHEST)
    return jnp.concatenate([seen, 2 * preference - 1])


@eqx.filter_jit
def explore(
    agent: Agent,
    observations: Float[Array, "n o"],
    preferences: Float[Array, "n m"],
    centre: Float[Array, " o"],
    spread: Float[Array, " o"],
    noise: Float[Array, "n a"],
) -> tuple[Float[Array, "n a"], Float[Array, " n"]]:
    """Actions with the given standard normal noise, and their log-probabilities."""

    def one(
        observation: Float[Array, " o"], preference: Float[Array, " m"], noise: Float[Array, " a"]
    ) -> tuple[Float[Array, " a"], Float[Array, ""]]:
        features = encode(observation, preference, centre, spread)
        action = agent.actor(features) + agent.std * noise
        return action, agent.log_probability(features, action)

    return jax.vmap(one)(observations, preferences, noise)
