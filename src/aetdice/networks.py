"""Networks on augmented states: an encoder, a multilayer perceptron, ν, and policies."""

import abc
import dataclasses
import itertools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, DTypeLike, Float, Int, PRNGKeyArray, Shaped

from aetdice.objectives.parameters import Parameter, cast, parameter

JOINT_LIMIT = 1024
"""Discrete observations with at most this many combinations also get one indicator for each."""

LEAST_DRAWN = 0.01
"""How likely a course must be to be kept."""


Kept = tuple[Float[Array, "_"], ...]
"""A factor for every unit of every hidden layer, as dropout draws it; or nothing."""


class Perceptron(eqx.Module):
    """Linear layers with GELU between them; the last one starts at zero."""

    weights: tuple[Float[Array, "i o"], ...]
    biases: tuple[Float[Array, " o"], ...]

    def __init__(self, sizes: tuple[int, ...], key: PRNGKeyArray) -> None:
        fans = list(itertools.pairwise(sizes))
        keys = jax.random.split(key, len(fans))
        scales = [*(math.sqrt(2 / fan[0]) for fan in fans[:-1]), 0.0]
        self.weights = tuple(
            scale * jax.random.normal(k, fan, jnp.float32)
            for scale, k, fan in zip(scales, keys, fans, strict=True)
        )
        self.biases = tuple(jnp.zeros(fan[1], jnp.float32) for fan in fans)

    def __call__(
        self, x: Float[Array, "*rows i"], kept: Kept = (), *, coarse_slopes: bool = False
    ) -> Float[Array, "*rows o"]:
        """In the precision of x, but for the sums of the last layer."""
        hidden = self.hidden(x, kept, coarse_slopes=coarse_slopes)
        weight, bias = self.weights[-1].astype(x.dtype), self.biases[-1]
        return _affine(hidden, weight, bias, bias.dtype)

    def hidden(
        self, x: Float[Array, "*rows i"], kept: Kept = (), *, coarse_slopes: bool = False
    ) -> Float[Array, "*rows h"]:
        """What the last layer sees; `kept` scales the units of each hidden layer."""
        layer = _layer_with_coarse_slopes if coarse_slopes else _layer
        for i, (weight, bias) in enumerate(zip(self.weights[:-1], self.biases[:-1], strict=True)):
            x = layer(x, weight.astype(x.dtype), bias.astype(x.dtype))
            x = x * jnp.broadcast_to(kept[i].astype(x.dtype), x.shape) if kept else x
        return x


def _layer(
    x: Float[Array, "*rows i"], weight: Float[Array, "i o"], bias: Float[Array, " o"]
) -> Float[Array, "*rows o"]:
    return jax.nn.gelu(_affine(x, weight, bias, x.dtype))


def _affine(
    x: Float[Array, "*rows i"], weight: Float[Array, "i o"], bias: Float[Array, " o"], dtype: DTypeLike
) -> Float[Array, "*rows o"]:
    """x W + b, summed in the given precision."""
    if x.ndim == 2 and x.dtype == dtype:
        y = _product_of_rows(x, weight)
    else:
        y = jnp.matmul(x, weight, preferred_element_type=dtype)
    return y + jnp.broadcast_to(bias, y.shape)


@jax.custom_vjp
def _product_of_rows(x: Float[Array, "rows i"], weight: Float[Array, "i o"]) -> Float[Array, "rows o"]:
    """x W, where W's slope is laid out as W is: JAX would make its transpose, slow to add to moments."""
    return x @ weight


def _slopes_of_product(
    at: tuple[Array, Array], change: Float[Array, "rows o"]
) -> tuple[Float[Array, "rows i"], Float[Array, "i o"]]:
    x, weight = at
    over_outputs, over_rows = (((1,), (1,)), ((), ())), (((0,), (0,)), ((), ()))
    return jax.lax.dot_general(change, weight, over_outputs), jax.lax.dot_general(x, change, over_rows)


_product_of_rows.defvjp(lambda x, weight: (x @ weight, (x, weight)), _slopes_of_product)


_layer_with_coarse_slopes = jax.custom_jvp(_layer)
"""The same values, with slopes from products of numbers that are rounded to bfloat16."""


@_layer_with_coarse_slopes.defjvp
def _slope(at: tuple[Array, Array, Array], along: tuple[Array, Array, Array]) -> tuple[Array, Array]:
    x, weight, bias = at
    before = _affine(x, weight, bias, x.dtype)
    value, slope = jax.jvp(jax.nn.gelu, (before,), (jnp.ones_like(before),))
    dx, d_weight, d_bias = (_rounded(each) for each in along)
    change = dx @ _rounded(weight) + _rounded(x) @ d_weight + jnp.broadcast_to(d_bias, before.shape)
    return value, (_rounded(slope) * change).astype(value.dtype)


def _rounded(x: Float[Array, "*s"]) -> Float[Array, "*s"]:
    return x.astype(jnp.bfloat16)


def products_are_rounded() -> bool:
    """Whether bfloat16 is asked for; JAX by itself takes TF32 for it, whose numbers are twice as large."""
    return bool(jax.config.jax_default_matmul_precision == "bfloat16")  # type: ignore[attr-defined]


class Encoder(eqx.Module):
    """(s, R_acc, t) as features of order one; everything it needs to act is inside.

    Discrete observations become indicators, continuous ones are standardised, with Fourier features
    beside them. The accrued reward enters through symlog and Fourier features, time through the latter.
    """

    sizes: tuple[int, ...] | None = eqx.field(static=True)
    """Values per entry of a discrete observation; None for continuous ones."""
    horizon: int = eqx.field(static=True)
    use_accrued: bool = eqx.field(static=True)
    use_time: bool = eqx.field(static=True)
    centre: Parameter = eqx.field(converter=parameter)
    spread: Parameter = eqx.field(converter=parameter)
    accrued_range: Parameter = eqx.field(converter=parameter)
    """The largest |symlog R_acc| per objective, so that every objective spans about [-1, 1]."""
    observation_fourier: int = eqx.field(static=True)
    """Frequencies of the Fourier features of continuous observations."""
    fourier: int = eqx.field(static=True)
    """Frequencies of those of accrued reward and time."""

    def __call__(
        self, observation: Shaped[Array, " o"], accrued: Float[Array, " m"], time: Int[Array, ""]
    ) -> Float[Array, " features"]:
        scaled = [symlog(accrued) / _constant(self.accrued_range, accrued)] if self.use_accrued else []
        entries = [*scaled, *([time.astype(accrued.dtype)[None] / self.horizon] if self.use_time else [])]
        fine = [fourier_features(jnp.concatenate(entries), self.fourier)] if entries else []
        return jnp.concatenate([self._observation(observation), *scaled, *fine])

    def _observation(self, observation: Shaped[Array, " o"]) -> Float[Array, " features"]:
        if self.sizes is None:
            x = observation.astype(jnp.float32)
            scaled = (x - _constant(self.centre, x)) / _constant(self.spread, x)
            return jnp.concatenate([scaled, fourier_features(scaled / 2, self.observation_fourier)])
        entries = [jax.nn.one_hot(observation[i], size) for i, size in enumerate(self.sizes)]
        if len(self.sizes) > 1 and math.prod(self.sizes) <= JOINT_LIMIT:
            joint = jnp.zeros((), jnp.int32)
            for i, size in enumerate(self.sizes):
                joint = joint * size + observation[i].astype(jnp.int32)
            entries.append(jax.nn.one_hot(joint, math.prod(self.sizes)))
        return jnp.concatenate(entries)

    def without_time(self) -> "Encoder":
        """For a ν whose heads tell the time."""
        return dataclasses.replace(self, use_time=False)

    @property
    def features(self) -> int:
        observation = jnp.zeros(len(self.centre), jnp.int32)
        accrued = jnp.zeros(self.accrued_range.shape, jnp.float32)
        encoded = jax.eval_shape(self.__call__, observation, accrued, jnp.zeros((), jnp.int32))
        return int(encoded.shape[0])


def _constant(value: Parameter, x: Float[Array, "..."]) -> Array:
    """A fact about the dataset, not a weight: no gradient reaches it."""
    return jax.lax.stop_gradient(cast(value, x))


def symlog(x: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """sign(x) log(1 + |x|)."""
    return jnp.sign(x) * jnp.log1p(jnp.abs(x))


def fourier_features(x: Float[Array, " k"], frequencies: int) -> Float[Array, " features"]:
    """sin and cos of π 2^j x for every entry: tells nearby values apart at every scale."""
    angles = jnp.pi * 2.0 ** jnp.arange(-1, frequencies - 1, dtype=x.dtype)[None] * x[:, None]
    return jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], axis=1).ravel()


class Nu(eqx.Module):
    """ν(s, R_acc, t), with time as an input or with one head per time step."""

    encoder: Encoder
    net: Perceptron
    offsets: Float[Array, " constants"]
    """A constant per time step: its optimality is the conservation of mass. Or one for all."""

    def __init__(
        self, encoder: Encoder, hidden: tuple[int, ...], heads: int, constants: int, key: PRNGKeyArray
    ) -> None:
        """`heads` = 1 takes time as an input; more take it as the index of a head."""
        self.encoder = encoder
        self.net = Perceptron((encoder.features, *hidden, heads), key)
        self.offsets = jnp.zeros(constants, jnp.float32)

    @property
    def trained(self) -> tuple[Perceptron, Float[Array, " constants"]]:
        """All that training changes."""
        return self.net, self.offsets

    def with_trained(self, trained: tuple[Perceptron, Float[Array, " constants"]]) -> "Nu":
        return eqx.tree_at(lambda nu: (nu.net, nu.offsets), self, trained)

    def heads(self, encoded: Float[Array, "*rows features"]) -> Float[Array, "*rows heads"]:
        """ν at every time step, where each has a head, of what the encoder has made of a state."""
        outputs = self._outputs(encoded)
        return outputs + jnp.broadcast_to(self.offsets, outputs.shape)

    def of_encoded(
        self, encoded: Float[Array, "*rows features"], time: Int[Array, "*rows"]
    ) -> Float[Array, "*rows"]:
        """ν of what the encoder has made of a state."""
        last = self.offsets.shape[0] - 1
        offset = self.offsets[jnp.minimum(time, last)] if last else self.offsets[0]
        return _at(self._outputs(encoded), time) + offset

    def _outputs(self, encoded: Float[Array, "*rows features"]) -> Float[Array, "*rows heads"]:
        # Ratios are differences of ν over a small β: only its slopes may be coarse.
        return self.net(encoded, coarse_slopes=products_are_rounded())

    def __call__(
        self, observation: Shaped[Array, " o"], accrued: Float[Array, " m"], time: Int[Array, ""]
    ) -> Float[Array, ""]:
        return self.of_encoded(self.encoder(observation, accrued, time), time)


def _at(entries: Float[Array, "*rows k"], time: Int[Array, "*rows"]) -> Float[Array, "*rows"]:
    """The entry of a time step, the last one beyond the end."""
    last = entries.shape[-1] - 1
    if last == 0:
        return entries[..., 0]
    return jnp.take_along_axis(entries, jnp.minimum(time, last)[..., None], axis=-1)[..., 0]


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
        return jax.nn.log_softmax(outputs)[action]

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
        low, high = _constant(self.low, like), _constant(self.high, like)
        return (low + high) / 2, (high - low) / 2


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
        chances = _constant(self.courses, accrued)
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
