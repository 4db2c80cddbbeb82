"""A multilayer perceptron, with dropout and half precision where they are asked for."""

import itertools
import math
from typing import Any, NamedTuple

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
        """In the precision that x asks for; the last layer is summed in float32."""
        hidden = self.hidden(x, kept)
        weight, bias = self.weights[-1].astype(hidden.dtype), self.biases[-1]
        return _affine(_in_rows(hidden), weight, bias).reshape(*x.shape[:-1], len(bias))

    def hidden(self, x: Float[Array, "*rows i"], kept: Kept = ()) -> Float[Array, "*rows h"]:
        """What the last layer sees; `kept` scales the units of each hidden layer."""
        rows = _hidden_layers(_in_rows(x), self.weights[:-1], self.biases[:-1], kept)
        return rows.reshape(*x.shape[:-1], rows.shape[-1])


class Precision(NamedTuple):
    """Of a network's layers."""

    products: DTypeLike
    """Their factors: what layers see, and weights."""
    sums: DTypeLike
    """What comes of them, before and after GELU."""
    gradients: DTypeLike


def _precision_of(x: Float[Array, "*s"]) -> Precision:
    """All as x is; but float16 has no room for small gradients, and its products are summed in float32."""
    if x.dtype == jnp.float16:
        return Precision(jnp.float16, jnp.float32, jnp.bfloat16)
    return Precision(x.dtype, x.dtype, x.dtype)


def _in_rows(x: Float[Array, "*rows i"]) -> Float[Array, "n i"]:
    return x.reshape(-1, x.shape[-1])


@jax.custom_vjp
def _hidden_layers(
    x: Float[Array, "rows i"], weights: Layers, biases: Layers, kept: Kept
) -> Float[Array, "rows h"]:
    return _hidden_and_slopes(x, weights, biases, kept)[0]


def _hidden_and_slopes(
    x: Float[Array, "rows i"], weights: Layers, biases: Layers, kept: Kept
) -> tuple[Float[Array, "rows h"], Any]:
    """What each layer sees, and its slope, are written down once.

    By itself XLA would keep what they are made of, and read all of that again.
    """
    precision, seen, slopes = _precision_of(x), [x], []
    for i, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        before = _affine(seen[-1], weight.astype(precision.products), bias.astype(precision.sums))
        value, slope = jax.jvp(jax.nn.gelu, (before,), (jnp.ones_like(before),))
        if kept:
            factor = jnp.broadcast_to(kept[i].astype(value.dtype), value.shape)
            value, slope = value * factor, slope * factor
        last = i == len(weights) - 1
        shown = value if last else value.astype(precision.products)
        written = (shown, slope.astype(precision.gradients))
        shown, slope = jax.lax.optimization_barrier(written)  # type: ignore[no-untyped-call]
        seen.append(shown)
        slopes.append(slope)
    return seen[-1], (tuple(seen[:-1]), tuple(slopes), weights, kept)


def _along_hidden(at: Any, change: Float[Array, "rows h"]) -> Any:
    seen, slopes, weights, kept = at
    along: list[tuple[Array, Array]] = []
    for x, slope, weight in zip(*map(reversed, (seen, slopes, weights)), strict=True):
        exact = slope.astype(jnp.float32) * change.astype(jnp.float32)
        change = exact.astype(slope.dtype)
        d_weight, d_bias = _over_rows(x.astype(change.dtype), change), jnp.sum(exact, axis=0)
        along.append((d_weight.astype(weight.dtype), d_bias.astype(weight.dtype)))
        change = change @ weight.astype(change.dtype).T
    d_weights, d_biases = zip(*reversed(along), strict=True)
    return change.astype(seen[0].dtype), d_weights, d_biases, jax.tree.map(jnp.zeros_like, kept)


_hidden_layers.defvjp(_hidden_and_slopes, _along_hidden)


@jax.custom_vjp
def _affine(
    x: Float[Array, "rows i"], weight: Float[Array, "i o"], bias: Float[Array, " o"]
) -> Float[Array, "rows o"]:
    """x W + b, summed in the precision of b."""
    y = jnp.matmul(x, weight, preferred_element_type=bias.dtype)
    return y + jnp.broadcast_to(bias, y.shape)


def _along_affine(at: tuple[Array, Array], change: Float[Array, "rows o"]) -> tuple[Array, Array, Array]:
    x, weight = at
    d_bias, change = jnp.sum(change, axis=0), change.astype(x.dtype)
    return change @ weight.T, _over_rows(x, change), d_bias


_affine.defvjp(lambda x, weight, bias: (_affine(x, weight, bias), (x, weight)), _along_affine)


def _over_rows(x: Float[Array, "rows i"], change: Float[Array, "rows o"]) -> Float[Array, "i o"]:
    """A weight's slope, laid out as the weight is: JAX would make its transpose, slow to add to moments."""
    return jax.lax.dot_general(x, change, (((0,), (0,)), ((), ())))


def products_are_rounded() -> bool:
    """Whether bfloat16 is asked for; JAX by itself takes TF32 for it, whose numbers are twice as large."""
    return bool(jax.config.jax_default_matmul_precision == "bfloat16")  # type: ignore[attr-defined]
