"""What the benchmarks of speed share: seconds of the updates of both stages, and what is in an update."""

import itertools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from aetdice import Episodes, TrainingConfig
from aetdice.algorithms import Algorithm
from aetdice.algorithms.cloning import CloningState
from aetdice.algorithms.sampling import Shown
from aetdice.data.device import DeviceData
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
from aetdice.networks import Encoder, PolicyHead
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


class Population(NamedTuple):
    """Members that are alike but for their seeds, on plain data, for ESR."""

    learner: Algorithm
    encoder: Encoder
    head: PolicyHead
    hypers: Any
    seeds: Int[Array, " members"]
    rates: Float[Array, " members"]
    data: DeviceData
    config: TrainingConfig

    def values(self) -> Any:
        """Fresh ones."""
        return start_values(self.learner, self.encoder, self.hypers, self.seeds, self.data)

    def policies(self) -> CloningState:
        """Fresh ones."""
        return start_policies(self.encoder, self.head, self.config.network.hidden, self.seeds)

    def shown(self, chunk: int) -> Shown:
        """What policies see in each update of a chunk, on the host."""
        weights = sample_weights_for(None, behaviour_shares(self.data), self.data, self.config)
        size = self.config.extraction.batch
        return jax.device_get(stack([draw_policy(weights, s, jnp.arange(chunk), size) for s in self.seeds]))


def population_of(dataset: Episodes, algorithm: str, config: TrainingConfig, members: int) -> Population:
    horizon = int(dataset.lengths.max())
    learner = algorithm_for(algorithm, horizon, config)
    choice = {"objective": esr(threshold=0.01), "learning_rate": 3e-4, **learner.sweeps}
    return Population(
        learner,
        encoder_for(dataset, horizon, learner, config.network),
        head_for(dataset, config.network),
        hypers=stack([hyper_of(choice, learner)] * members),
        seeds=jnp.arange(members),
        rates=jnp.full(members, 3e-4),
        data=onto_device(dataset, horizon, learner),
        config=config,
    )


def timed_updates(
    dataset: Episodes, algorithm: str, config: TrainingConfig, members: int, *, chunk: int, chunks: int
) -> Timed:
    """Both stages of a population."""
    found = population_of(dataset, algorithm, config, members)
    learner, hypers, seeds, data = found.learner, found.hypers, found.seeds, found.data
    encoder, head, shown = found.encoder, found.head, found.shown(chunk)
    with jax.default_matmul_precision(config.trainer.precision):
        values, policies = found.values(), found.policies()
        size, state_bytes = {"chunk": chunk, "chunks": chunks}, size_of((values, policies))
        first, value = _seconds(lambda s, k: train_values(s, learner, hypers, seeds, data, k), values, **size)
        second, cloning = _seconds(
            lambda s, k: train_policies(
                s, jax.device_put(shown), found.rates, seeds, data, k, config.extraction
            ),
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
