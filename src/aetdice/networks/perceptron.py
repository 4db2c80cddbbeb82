"""A multilayer perceptron, with dropout and coarse slopes where they are asked for."""

import itertools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, DTypeLike, Float, PRNGKeyArray

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
