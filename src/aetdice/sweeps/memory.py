"""How much memory a population will take, counted from shapes before anything is trained.

Updates see all members at once; metrics and passes over all data one member after the other, a block of
steps at a time.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from aetdice.algorithms import Algorithm
from aetdice.config import TrainingConfig
from aetdice.data import Episodes
from aetdice.data.passes import LARGE_BLOCK
from aetdice.learning.inputs import (
    courses_for,
    encoder_for,
    encoder_of_values,
    head_for,
    onto_device,
)
from aetdice.learning.population import stack, start_policies, start_values
from aetdice.learning.streaming import may_stay

FLOAT = 4
PER_STEP = 6
"""Numbers for each step of the data while a member is weighed: its weights and what they become."""
PASSES = 6
"""Activations and gradients that an update keeps, of each layer."""
FEW = 4
"""Episodes by which the bytes of a step are told."""


class Memory(NamedTuple):
    """Bytes of the data and a pass over it, of each member, and of each twin that members of a seed share."""

    data: int
    member: int
    twin: int

    def of(self, members: int, seeds: int) -> int:
        return self.data + members * self.member + seeds * self.twin


def memory_of(
    dataset: Episodes, horizon: int, learner: Algorithm, config: TrainingConfig, hyper: Any
) -> Memory:
    """What members with this configuration take; `hyper` is any one of theirs."""
    few = dataset.select(np.arange(min(FEW, len(dataset))))
    data = onto_device(few, horizon, learner)
    encoder = encoder_for(dataset, horizon, learner, config.network)
    seeds = jnp.zeros(1, jnp.int32)
    coarse = encoder_of_values(encoder, config.network)
    values = eqx.filter_eval_shape(start_values, learner, coarse, stack([hyper]), seeds, data)
    head, hidden = head_for(dataset, config.network), config.network.hidden
    policy = eqx.filter_eval_shape(
        start_policies, encoder, head, hidden, seeds, courses_for(dataset, learner)
    )
    batch = max(config.dual.batch, config.iql.batch, config.extraction.batch)
    row = FLOAT * (encoder.features + sum(hidden))
    updates = batch * (FLOAT * config.trainer.chunk + PASSES * row)
    steps = 0 if may_stay(dataset, config) else dataset.steps
    block = min(steps or LARGE_BLOCK, LARGE_BLOCK)
    policies = size_of(policy) + updates
    return Memory(
        data=size_of(data) * steps // data.count + FLOAT * PER_STEP * steps + 2 * row * block,
        member=2 * size_of(values) + updates + policies,
        twin=policies,
    )


def size_of(tree: Any) -> int:
    """Bytes of the arrays in a tree, be they there or only described."""
    leaves = [leaf for leaf in jax.tree.leaves(tree) if hasattr(leaf, "dtype") and hasattr(leaf, "shape")]
    return sum(leaf.size * leaf.dtype.itemsize for leaf in leaves)


def in_words(count: int) -> str:
    """Such as 320 MiB or 1.5 GiB."""
    return f"{count / (1 << 30):.1f} GiB" if count >= 1 << 30 else f"{max(1, round(count / (1 << 20)))} MiB"
