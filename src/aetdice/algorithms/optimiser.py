"""Adam with a traced, cosine-shaped learning rate."""

from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

M = TypeVar("M")

ADAM = optax.scale_by_adam()


def cosine(progress: Float[Array, ""]) -> Float[Array, ""]:
    """From 1 at the start to 0 at the end."""
    return (1 + jnp.cos(jnp.pi * jnp.clip(progress, 0, 1))) / 2


def descend(
    module: M, gradient: M, state: optax.OptState, rate: Float[Array, ""]
) -> tuple[M, optax.OptState]:
    """One step against the gradient."""
    with jax.numpy_dtype_promotion("standard"):  # optax raises floats to integer powers
        direction, state = ADAM.update(gradient, state)
    step = eqx.filter(direction, eqx.is_inexact_array)
    scaled = optax.tree.scale(-rate, step)
    return eqx.apply_updates(module, scaled), state


def average(old: M, new: M, decay: Float[Array, ""]) -> M:
    """decay · old + (1 - decay) · new, weight by weight."""
    return jax.tree.map(lambda o, n: decay * o + (1 - decay) * n if eqx.is_inexact_array(n) else n, old, new)
