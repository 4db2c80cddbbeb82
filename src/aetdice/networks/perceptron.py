"""A multilayer perceptron, with dropout and half precision where they are asked for."""

import itertools
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, DTypeLike, Float, PRNGKeyArray

Layers = tuple[Float[Array, "..."], ...]
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

    def __call__(self, x: Float[Array, "*rows i"], kept: Kept = ()) -> Float[Array, "*rows o"]:
        """In float32, or in the half precision of x with all sums in float32."""
        outputs = _outputs(_in_rows(x), self.weights, self.biases, kept)
        return outputs.reshape(*x.shape[:-1], outputs.shape[-1])

    def hidden(self, x: Float[Array, "*rows i"], kept: Kept = ()) -> Float[Array, "*rows h"]:
        """What the last layer sees; `kept` scales the units of each hidden layer."""
        seen, _ = _hidden_layers(_in_rows(x), self.weights, self.biases, kept)
        return seen[-1].reshape(*x.shape[:-1], seen[-1].shape[-1])


def _in_rows(x: Float[Array, "*rows i"]) -> Float[Array, "n i"]:
    return x.reshape(-1, x.shape[-1])


@jax.custom_vjp
def _outputs(
    x: Float[Array, "rows i"], weights: Layers, biases: Layers, kept: Kept
) -> Float[Array, "rows o"]:
    return _outputs_and_slopes(x, weights, biases, kept)[0]


def _outputs_and_slopes(
    x: Float[Array, "rows i"], weights: Layers, biases: Layers, kept: Kept
) -> tuple[Float[Array, "rows o"], Any]:
    seen, slopes = _hidden_layers(x, weights, biases, kept)
    factors = _last_factors(x)
    outputs = _product(seen[-1].astype(factors), weights[-1].astype(factors))
    return outputs + jnp.broadcast_to(biases[-1], outputs.shape), (seen, slopes, weights, kept)


def _hidden_layers(
    x: Float[Array, "rows i"], weights: Layers, biases: Layers, kept: Kept
) -> tuple[list[Array], list[Array]]:
    """What each layer sees, and its slope, written down once.

    By itself XLA would keep what they are made of, and read all of that again for the gradient.
    """
    seen, slopes = [x], []
    for i, (weight, bias) in enumerate(zip(weights[:-1], biases[:-1], strict=True)):
        product = _product(seen[-1], weight.astype(x.dtype)).astype(x.dtype)
        before = product.astype(bias.dtype) + jnp.broadcast_to(bias, product.shape)
        value, slope = jax.jvp(jax.nn.gelu, (before,), (jnp.ones_like(before),))
        if kept:
            factor = jnp.broadcast_to(kept[i], value.shape)
            value, slope = value * factor, slope * factor
        written = value.astype(x.dtype), slope.astype(_gradients(x))
        value, slope = jax.lax.optimization_barrier(written)  # type: ignore[no-untyped-call]
        seen.append(value)
        slopes.append(slope)
    return seen, slopes


def _along_outputs(at: Any, change: Float[Array, "rows o"]) -> Any:
    """Gradients from the last layer to the first."""
    seen, slopes, weights, kept = at
    x, above = seen[0], change.astype(_last_factors(seen[0]))
    along = [(_over_rows(seen[-1].astype(above.dtype), above), jnp.sum(change, axis=0))]
    for i in reversed(range(len(slopes))):
        above = above @ weights[i + 1].astype(above.dtype).T
        exact = slopes[i].astype(jnp.float32) * above.astype(jnp.float32)
        above = exact.astype(_gradients(x))
        along.append((_over_rows(seen[i].astype(above.dtype), above), jnp.sum(exact, axis=0)))
    d_weights, d_biases = zip(*reversed(along), strict=True)
    d_weights = tuple(each.astype(jnp.float32) for each in d_weights)
    dx = (above @ weights[0].astype(above.dtype).T).astype(x.dtype)
    return dx, d_weights, d_biases, jax.tree.map(jnp.zeros_like, kept)


_outputs.defvjp(_outputs_and_slopes, _along_outputs)


def _product(x: Float[Array, "rows i"], weight: Float[Array, "i o"]) -> Float[Array, "rows o"]:
    return jnp.matmul(x, weight, preferred_element_type=jnp.float32)


def _over_rows(x: Float[Array, "rows i"], change: Float[Array, "rows o"]) -> Float[Array, "i o"]:
    """A weight's slope, laid out as the weight is: JAX would make its transpose, slow to add to moments."""
    return jax.lax.dot_general(x, change, (((0,), (0,)), ((), ())))


def _gradients(x: Array) -> DTypeLike:
    """The precision of gradients: float16 has no room for small ones."""
    return jnp.bfloat16 if x.dtype == jnp.float16 else x.dtype


def _last_factors(x: Array) -> DTypeLike:
    """The precision of what the last layer multiplies: of float16 it is few outputs, and they are ν."""
    return jnp.float32 if x.dtype == jnp.float16 else x.dtype


def products_are_rounded() -> bool:
    """Whether bfloat16 is asked for; JAX by itself takes TF32 for it, whose numbers are twice as large."""
    return bool(jax.config.jax_default_matmul_precision == "bfloat16")  # type: ignore[attr-defined]
