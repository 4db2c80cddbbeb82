"""How the programs of updates are compiled."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import equinox as eqx
import jax

F = TypeVar("F", bound=Callable[..., Any])

WIDE = 512
"""Units of a layer."""


def in_place(function: F) -> F:
    """Compiled; the states, which come first, are updated where they are: those given are gone after it.

    On a GPU with kernels generated for it, but for one wide network: there its own library is faster.
    """

    def onward(rest: tuple[Any, ...], states: Any) -> Any:
        return function(states, *rest)

    @functools.cache
    def compiled(generated: bool) -> Any:
        options = {"xla_gpu_enable_triton_gemm": generated, **_plain_products()}
        return eqx.filter_jit(onward, donate="all-except-first", compiler_options=options)  # type: ignore[call-overload]

    @functools.wraps(function)
    def fastest(states: Any, *rest: Any) -> Any:
        return compiled(not _one_and_wide(states))(rest, states)

    return cast(F, fastest)


def _one_and_wide(states: Any) -> bool:
    shapes = [leaf.shape for leaf in jax.tree.leaves(states) if eqx.is_array(leaf) and leaf.ndim == 3]
    return any(members == 1 and min(sizes) > WIDE for members, *sizes in shapes)


@functools.cache
def _plain_products() -> dict[str, str]:
    """On a CPU, products by Eigen: what XLA would put in their place transposes inputs first."""
    return known_options(xla_cpu_experimental_ynn_fusion_type="") if jax.default_backend() == "cpu" else {}


def known_options(**options: str) -> dict[str, str]:
    """These, if this release of XLA has them all; otherwise none."""
    try:
        jax.jit(lambda: 0, compiler_options=options).lower().compile()
    except jax.errors.JaxRuntimeError:
        return {}
    return options
