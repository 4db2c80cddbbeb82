"""Evaluate the maths objects in float64, whatever the process default."""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np


def in_float64(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function for float64, on the host: NumPy arrays (and modules) in, NumPy arrays out.

    An accelerator is slow at it, and its memory is for data in float32. Modules given as arguments, or as
    the function itself (`eqx.filter_vmap(module)` too), are compiled once for all values of their parameters.
    """
    return functools.partial(_evaluate, function)


def _evaluate(function: Callable[..., Any], *arguments: Any) -> Any:
    with jax.enable_x64(True), jax.default_device(_host()):
        return jax.tree.map(np.asarray, _call(function, tuple(map(_promote, arguments))))


@functools.cache
def _host() -> jax.Device | None:
    """None, which is any device, where JAX was told to leave the host alone."""
    try:
        return jax.local_devices(backend="cpu")[0]
    except RuntimeError:
        return None


@eqx.filter_jit
def _call(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return function(*arguments)


def _promote(argument: Any) -> Any:
    if isinstance(argument, np.ndarray) and np.issubdtype(argument.dtype, np.floating):
        return jnp.asarray(argument, dtype=jnp.float64)
    return argument
