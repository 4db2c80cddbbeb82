"""What the outputs of a policy network mean: one of several actions, or a mixture of Gaussians."""

import abc
import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, Shaped

from aetdice.networks.encoder import constant
from aetdice.objectives.parameters import Parameter, cast, parameter


class PolicyHead(eqx.Module):
    """What the outputs of a policy network mean."""

    @property
    @abc.abstractmethod
    def outputs(self) -> int:
        """How many numbers the network gives."""

    @abc.abstractmethod
    def log_probability(self, outputs: Float[Array, " k"], action: Shaped[Array, "*a"]) -> Float[Array, ""]:
        """log π(a|s̃), up to nothing."""

    @abc.abstractmethod
    def sample(self, outputs: Float[Array, " k"], key: PRNGKeyArray) -> Shaped[Array, "*a"]:
        """An action."""

    @abc.abstractmethod
    def greedy(self, outputs: Float[Array, " k"]) -> Shaped[Array, "*a"]:
        """The likeliest action, or the middle of the likeliest component."""


class Categorical(PolicyHead):
    """One of several actions."""

    actions: int = eqx.field(static=True)

    @property
    def outputs(self) -> int:
        return self.actions

    def log_probability(self, outputs: Float[Array, " k"], action: Shaped[Array, "*a"]) -> Float[Array, ""]:
        # A sum, whose slope is one; that of an index is a scatter, on a GPU slow and in no fixed order.
        chosen = jnp.arange(self.actions) == action
        return jnp.sum(jnp.where(chosen, jax.nn.log_softmax(outputs), 0))

    def sample(self, outputs: Float[Array, " k"], key: PRNGKeyArray) -> Shaped[Array, "*a"]:
        return jax.random.categorical(key, outputs)

    def greedy(self, outputs: Float[Array, " k"]) -> Shaped[Array, "*a"]:
        return jnp.argmax(outputs)


class GaussianMixture(PolicyHead):
    """A mixture of diagonal Gaussians over action vectors; one component is the plain Gaussian.

    A unimodal policy cannot represent the stochastic mixtures of SER and AET optima (D15, docs/paper.md).
    Samples are clipped to the range the dataset's actions span.
    """

    low: Parameter = eqx.field(converter=parameter)
    high: Parameter = eqx.field(converter=parameter)
    components: int = eqx.field(static=True)
    smallest: float = eqx.field(static=True, default=-5.0)
    """Of the log standard deviation, in units of half the action range."""

    @property
    def outputs(self) -> int:
        return self.components * (1 + 2 * len(self.low))

    def log_probability(self, outputs: Float[Array, " k"], action: Shaped[Array, "*a"]) -> Float[Array, ""]:
        choice, mean, log_std = self._parameters(outputs)
        centre, half = self._range(outputs)
        z = ((cast(action, outputs) - centre) / half)[None] - mean
        normal = -0.5 * jnp.square(z * jnp.exp(-log_std)) - log_std - 0.5 * math.log(2 * math.pi)
        return jax.nn.logsumexp(choice + jnp.sum(normal, axis=1)) - jnp.sum(jnp.log(half))

    def sample(self, outputs: Float[Array, " k"], key: PRNGKeyArray) -> Shaped[Array, "*a"]:
        choice, mean, log_std = self._parameters(outputs)
        which, noise_key = jax.random.split(key)
        component = jax.random.categorical(which, choice)
        noise = jax.random.normal(noise_key, mean.shape[1:], mean.dtype)
        return self._action(mean[component] + jnp.exp(log_std[component]) * noise)

    def greedy(self, outputs: Float[Array, " k"]) -> Shaped[Array, "*a"]:
        choice, mean, _ = self._parameters(outputs)
        return self._action(mean[jnp.argmax(choice)])

    def _action(self, z: Float[Array, " a"]) -> Float[Array, " a"]:
        """From units of half the range to an action within it."""
        centre, half = self._range(z)
        return jnp.clip(centre + half * z, cast(self.low, z), cast(self.high, z))

    def _parameters(self, outputs: Float[Array, " k"]) -> tuple[Array, Array, Array]:
        choice, rest = outputs[: self.components], outputs[self.components :]
        mean, log_std = rest.reshape(2, self.components, len(self.low))
        # Components start apart, or they would all learn the same.
        spread = jnp.linspace(-0.5, 0.5, self.components, dtype=outputs.dtype)[:, None]
        start = spread if self.components > 1 else jnp.zeros_like(spread)
        return jax.nn.log_softmax(choice), mean + start, jnp.clip(log_std - 1.0, self.smallest, 1.0)

    def _range(self, like: Float[Array, " k"]) -> tuple[Array, Array]:
        low, high = constant(self.low, like), constant(self.high, like)
        return (low + high) / 2, (high - low) / 2
