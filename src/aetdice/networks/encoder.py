"""What networks see of an augmented state (s, R_acc, t)."""

import dataclasses
import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Shaped

from aetdice.objectives.parameters import Parameter, cast, parameter

JOINT_LIMIT = 1024
"""Discrete observations with at most this many combinations also get one indicator for each."""


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
        scaled = [symlog(accrued) / constant(self.accrued_range, accrued)] if self.use_accrued else []
        entries = [*scaled, *([time.astype(accrued.dtype)[None] / self.horizon] if self.use_time else [])]
        fine = [fourier_features(jnp.concatenate(entries), self.fourier)] if entries else []
        return jnp.concatenate([self._observation(observation), *scaled, *fine])

    def _observation(self, observation: Shaped[Array, " o"]) -> Float[Array, " features"]:
        if self.sizes is None:
            x = observation.astype(jnp.float32)
            scaled = (x - constant(self.centre, x)) / constant(self.spread, x)
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


def constant(value: Parameter, x: Float[Array, "..."]) -> Array:
    """A fact about the dataset, not a weight: no gradient reaches it."""
    return jax.lax.stop_gradient(cast(value, x))


def symlog(x: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """sign(x) log(1 + |x|)."""
    return jnp.sign(x) * jnp.log1p(jnp.abs(x))


def fourier_features(x: Float[Array, " k"], frequencies: int) -> Float[Array, " features"]:
    """sin and cos of π 2^j x for every entry: tells nearby values apart at every scale."""
    angles = jnp.pi * 2.0 ** jnp.arange(-1, frequencies - 1, dtype=x.dtype)[None] * x[:, None]
    return jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], axis=1).ravel()
