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

    by_library, generated = (
        eqx.filter_jit(  # type: ignore[call-overload]
            onward, donate="all-except-first", compiler_options={"xla_gpu_enable_triton_gemm": on}
        )
        for on in (False, True)
    )

    @functools.wraps(function)
    def fastest(states: Any, *rest: Any) -> Any:
        return (by_library if _one_and_wide((states, *rest)) else generated)(rest, states)

    return cast(F, fastest)


def _one_and_wide(arguments: Any) -> bool:
    shapes = [leaf.shape for leaf in jax.tree.leaves(arguments) if eqx.is_array(leaf) and leaf.ndim == 3]
    return any(members == 1 and min(sizes) > WIDE for members, *sizes in shapes)
