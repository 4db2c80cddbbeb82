"""Policies on augmented states, plain or mixtures of courses."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, Shaped

from aetdice.networks.encoder import Encoder, constant
from aetdice.networks.heads import PolicyHead
from aetdice.networks.perceptron import Perceptron
from aetdice.objectives.parameters import Parameter, parameter

LEAST_DRAWN = 0.01
"""How likely a course must be to be kept."""


class PolicyNetwork(eqx.Module):
    """π(a | s, R_acc, t); of a mixture policy π(a | s, R_acc, t, c), its course c drawn once per episode."""

    encoder: Encoder
    net: Perceptron
    head: PolicyHead
    courses: Parameter = eqx.field(converter=parameter)
    """How likely each course is; a policy that is no mixture has one."""

    def __init__(
        self,
        encoder: Encoder,
        head: PolicyHead,
        hidden: tuple[int, ...],
        key: PRNGKeyArray,
        courses: int = 1,
    ) -> None:
        self.encoder, self.head = encoder, head
        seen = encoder.features + (courses if courses > 1 else 0)
        self.net = Perceptron((seen, *hidden, head.outputs), key)
        self.courses = np.full(courses, 1 / courses, np.float32)

    @property
    def is_mixture(self) -> bool:
        return len(self.courses) > 1

    def draw_course(self, key: PRNGKeyArray, *, greedy: bool = False) -> Int[Array, ""] | None:
        """For a new episode: drawn, or the likeliest; None for a policy that is no mixture."""
        chances = jnp.asarray(self.courses, jnp.float32)
        if not self.is_mixture:
            return None
        return jnp.argmax(chances) if greedy else jax.random.categorical(key, jnp.log(chances))

    def on_course(self, course: int) -> "PolicyNetwork":
        """The same policy where the course is known: what the first layer makes of it is a constant."""
        if not self.is_mixture:
            return self
        first, features = self.net.weights[0], self.encoder.features
        return eqx.tree_at(
            lambda p: (p.net.weights[0], p.net.biases[0], p.courses),
            self,
            (first[:features], self.net.biases[0] + first[features + course], jnp.ones(1)),
        )

    def simplified(self) -> "PolicyNetwork":
        """Without courses that are hardly ever drawn."""
        chances = np.asarray(self.courses)
        used = np.flatnonzero(chances >= min(LEAST_DRAWN, chances.max()))
        if len(used) == 1:
            return self.on_course(int(used[0]))
        features = self.encoder.features
        rows = np.concatenate([np.arange(features), features + used])
        return eqx.tree_at(
            lambda p: (p.net.weights[0], p.courses),
            self,
            (self.net.weights[0][rows], jnp.asarray(chances[used] / chances[used].sum())),
        )

    def outputs(
        self,
        observation: Shaped[Array, " o"],
        accrued: Float[Array, " m"],
        time: Int[Array, ""],
        course: Int[Array, ""] | None = None,
    ) -> Float[Array, " k"]:
        """What the head reads; a mixture must be told the course."""
        return self.net(self.encoded(observation, accrued, time, course))

    def encoded(
        self,
        observation: Shaped[Array, " o"],
        accrued: Float[Array, " m"],
        time: Int[Array, ""],
        course: Int[Array, ""] | None = None,
    ) -> Float[Array, " features"]:
        """What the network reads."""
        features = self.encoder(observation, accrued, time)
        if not self.is_mixture:
            return features
        if course is None:
            raise TypeError("a mixture policy acts on a course")
        return jnp.concatenate([features, jax.nn.one_hot(course, len(self.courses))])

    def log_probability(
        self,
        observation: Shaped[Array, " o"],
        accrued: Float[Array, " m"],
        time: Int[Array, ""],
        action: Shaped[Array, "*a"],
        course: Int[Array, ""] | None = None,
    ) -> Float[Array, ""]:
        """log π(a|s̃), on the course or, where it is not said, on any."""
        if not self.is_mixture or course is not None:
            return self.head.log_probability(self.outputs(observation, accrued, time, course), action)
        chances = constant(self.courses, accrued)
        on = jnp.arange(chances.shape[0])
        each = jax.vmap(self.log_probability, (None, None, None, None, 0))(
            observation, accrued, time, action, on
        )
        return jax.nn.logsumexp(each, b=chances)

    def sample(
        self,
        observation: Shaped[Array, " o"],
        accrued: Float[Array, " m"],
        time: Int[Array, ""],
        key: PRNGKeyArray,
        course: Int[Array, ""] | None = None,
    ) -> Shaped[Array, "*a"]:
        return self.head.sample(self.outputs(observation, accrued, time, course), key)

    def greedy(
        self,
        observation: Shaped[Array, " o"],
        accrued: Float[Array, " m"],
        time: Int[Array, ""],
        course: Int[Array, ""] | None = None,
    ) -> Shaped[Array, "*a"]:
        return self.head.greedy(self.outputs(observation, accrued, time, course))
