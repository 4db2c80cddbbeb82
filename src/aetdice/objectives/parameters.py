"""Parameters of the maths objects: exact on the host, traced inside a program."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

Parameter = Any
"""A number, a vector or a JAX value: whatever `parameter` takes, and an array after it."""


def parameter(value: object) -> Parameter:
    """Keep JAX values (so that a sweep can trace them); hold anything else in float64."""
    if isinstance(value, jax.Array):
        return value
    return np.asarray(value, dtype=np.float64)


def cast(value: Parameter, x: Float[Array, "..."]) -> Array:
    """The parameter in the precision of the value it meets."""
    return jnp.asarray(value, dtype=x.dtype)


def per_entry(value: Parameter, x: Float[Array, " n"]) -> Float[Array, " n"]:
    """A scalar parameter repeated, or a vector one as it is, beside `x`."""
    cast_value = cast(value, x)
    if cast_value.shape not in ((), x.shape):
        raise ValueError(f"a parameter of shape {cast_value.shape} does not fit {x.shape[0]} entries")
    return jnp.broadcast_to(cast_value, x.shape)


def text(value: Parameter) -> str:
    """How a parameter stands in a name: `0.5`, `(1, 2)`, or `traced` inside a program."""
    if isinstance(value, jax.core.Tracer):
        return "traced"
    array = np.asarray(value)
    if array.ndim == 0:
        return f"{array:g}"
    return "(" + ", ".join(f"{entry:g}" for entry in array.ravel()) + ")"
