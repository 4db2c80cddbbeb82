"""What this machine can do at most: operations of matrix products, and bytes streamed through memory."""

import time
from typing import Any

import jax
import jax.numpy as jnp

REPEATS = 5
STREAMED = 1 << 25
"""Numbers per array, 128 MiB: beyond every cache."""


def roofline(sizes: tuple[int, ...]) -> dict[str, Any]:
    """GFLOP/s of square products by size, and GB/s of a + 2b."""
    product = jax.jit(lambda a, b: jnp.dot(a, b, precision="highest"))
    found = {}
    for size in sizes:
        a = jnp.full((size, size), 0.5, jnp.float32)
        count = max(1, (1 << 30) // size**3)

        def multiply(a: jax.Array = a, count: int = count) -> Any:
            return [product(a, a) for _ in range(count)]

        found[str(size)] = round(2e-9 * size**3 * count / _least_seconds(multiply), 1)
    triad = jax.jit(lambda a, b: a + 2 * b)
    a, b = (jnp.full(STREAMED, value, jnp.float32) for value in (1.0, 2.0))
    bandwidth = 1e-9 * 3 * 4 * STREAMED / _least_seconds(lambda: triad(a, b))
    return {
        "matmul_gflops": found,
        "peak_gflops": max(found.values()),
        "stream_gbytes": round(bandwidth, 1),
    }


def _least_seconds(work: Any) -> float:
    """The least of several, after one that compiles."""
    jax.block_until_ready(work())
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        jax.block_until_ready(work())
        times.append(time.perf_counter() - started)
    return min(times)
