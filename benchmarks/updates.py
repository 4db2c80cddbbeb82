"""What the benchmarks of speed share: seconds of the updates of both stages, and what is in an update."""

import itertools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from aetdice import Episodes, TrainingConfig
from aetdice.learning.extraction import behaviour_shares, sample_weights_for
from aetdice.learning.inputs import encoder_for, head_for, onto_device
from aetdice.learning.population import (
    draw_policy,
    stack,
    start_policies,
    start_values,
    train_policies,
    train_values,
)
from aetdice.learning.setup import algorithm_for, hyper_of
from aetdice.objectives import esr

NU_ARRAYS, POLICY_ARRAYS = 5, 4
"""Weights, their gradient and Adam's two moments; of ν also its average."""


class Timed(NamedTuple):
    """One learner's updates: the first chunk is compiled, the others count."""

    compile_seconds: float
    value: list[float]
    """Seconds per update of ν, or of the critics, chunk by chunk."""
    cloning: list[float]
    flops: float
    """Of matrix products, in one update of both stages of all members."""
    traffic: float
    """Bytes that one update cannot but move: weights, gradients and moments, each read and written once."""
    state_bytes: int
    data_bytes: int


def timed_updates(
    dataset: Episodes, algorithm: str, config: TrainingConfig, members: int, *, chunk: int, chunks: int
) -> Timed:
    """Both stages of a population for ESR, on plain data."""
    horizon = int(dataset.lengths.max())
    learner = algorithm_for(algorithm, horizon, config)
    data = onto_device(dataset, horizon, learner)
    encoder, head = encoder_for(dataset, horizon, learner, config.network), head_for(dataset, config.network)
    choice = {"objective": esr(threshold=0.01), "learning_rate": 3e-4, **learner.sweeps}
    hypers, seeds = stack([hyper_of(choice, learner)] * members), jnp.arange(members)
    weights = sample_weights_for(None, behaviour_shares(data), data, config)
    draws = [draw_policy(weights, seed, jnp.arange(chunk), config.extraction.batch) for seed in seeds]
    shown = jax.device_get(stack(draws))
    rates = jnp.full(members, 3e-4)
    with jax.default_matmul_precision(config.trainer.precision):
        values = start_values(learner, encoder, hypers, seeds, data)
        policies = start_policies(encoder, head, config.network.hidden, seeds)
        size, state_bytes = {"chunk": chunk, "chunks": chunks}, size_of((values, policies))
        first, value = _seconds(lambda s, k: train_values(s, learner, hypers, seeds, data, k), values, **size)
        second, cloning = _seconds(
            lambda s, k: train_policies(s, jax.device_put(shown), rates, seeds, data, k, config.extraction),
            policies,
            **size,
        )
    hidden, windows = config.network.hidden, 1 if data.breaks else config.dual.window
    seen = config.dual.batch + config.dual.batch // windows + config.dual.starts
    widths = (encoder.features, *hidden, 1), (encoder.features, *hidden, head.outputs)
    parameters = [sum(a * b for a, b in itertools.pairwise(each)) for each in widths]
    return Timed(
        compile_seconds=first + second - chunk * (min(value) + min(cloning)),
        value=value,
        cloning=cloning,
        flops=members * (products(widths[0], seen) + products(widths[1], config.extraction.batch)),
        traffic=members * 8.0 * (NU_ARRAYS * parameters[0] + POLICY_ARRAYS * parameters[1]),
        state_bytes=state_bytes,
        data_bytes=size_of(data),
    )


def products(widths: tuple[int, ...], rows: int) -> float:
    """Operations of a network's pass forward and back; nothing goes back to the inputs."""
    weights = [a * b for a, b in itertools.pairwise(widths)]
    return 2.0 * rows * (3 * sum(weights) - weights[0])


def size_of(tree: Any) -> int:
    """Bytes of a tree's arrays."""
    return sum(leaf.nbytes for leaf in jax.tree.leaves(tree) if eqx.is_array(leaf))


def _seconds(
    update: Callable[[Any, Any], Any], state: Any, *, chunk: int, chunks: int
) -> tuple[float, list[float]]:
    """Seconds of the first chunk, compilation included, and per update of the following ones."""
    found = []
    for index in range(chunks + 1):
        started = time.perf_counter()
        state = jax.block_until_ready(update(state, jnp.arange(index * chunk, (index + 1) * chunk)))
        found.append(time.perf_counter() - started)
    return found[0], [each / chunk for each in found[1:]]
