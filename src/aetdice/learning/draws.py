"""All that policies will learn from, drawn before the first update: weights and CDFs are gone before it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32

from aetdice.algorithms.sampling import Shown, sample_bits
from aetdice.config import ExtractionConfig
from aetdice.data.device import Recorded, Steps
from aetdice.data.mapping import release, temporary
from aetdice.learning.population import bits_of_policy

Draw = Callable[[UInt32[Array, "*n"]], Shown]
"""What numbers draw for a policy."""

SAMPLES = 8192
"""From which the distance between a policy and its twin is estimated."""
PIECE = 1 << 18
"""Steps that are drawn at once."""


class Sample(NamedTuple):
    """Steps, how much each counts, and the course that each shows of a mixture."""

    steps: Steps
    counts: Float[Array, " samples"]
    courses: Int[Array, " samples"] | None


class Draws(NamedTuple):
    """What each policy is shown: its size is that of the updates, whatever that of the data."""

    updates: list[Shown]
    """Of every policy, by update and place in the batch: in a temporary file."""
    samples: list[Shown]
    """Of every policy, to compare it with others."""
    chances: Float[np.ndarray, "policies courses"] | None = None
    """How likely each policy's courses are; None where policies are no mixtures."""

    def of(self, begin: int, end: int) -> Shown:
        """Of all policies in some updates: policies × updates × batch."""
        parts = [jax.tree.map(lambda leaf: np.array(leaf[begin:end]), each) for each in self.updates]
        for leaf in jax.tree.leaves(self.updates):
            release(leaf)
        return jax.tree.map(lambda *leaves: np.stack(leaves), *parts)


def drawn(draw: Draw, seed: Int[Array, ""], config: ExtractionConfig, plain: Draw) -> tuple[Shown, Shown]:
    """What a policy is shown in all updates, plain data until it is warm; and samples of its own."""
    warm, batch = round(config.warm_up * config.steps), config.batch
    found: Any = None
    for begin, end, of in ((0, warm, plain), (warm, config.steps, draw)):
        size = max(1, min(PIECE // batch, end - begin))
        for place in range(begin, end, size):
            first = min(place, end - size)  # pieces of one size: each is compiled for
            part = of(bits_of_policy(seed, jnp.arange(first, first + size), batch))
            if found is None:
                found = jax.tree.map(lambda leaf: temporary((config.steps, batch), leaf.dtype), part)
            for whole, piece in zip(jax.tree.leaves(found), jax.tree.leaves(part), strict=True):
                whole[first : first + size] = np.asarray(piece)
                release(whole)
    return found, jax.tree.map(np.asarray, draw(sample_bits(jax.random.key(0), SAMPLES)))


@eqx.filter_jit
def sample_of(steps: Recorded, shown: Shown) -> Sample:
    """What a policy is shown, as it learns from it."""
    counts = jnp.ones(shown.rows.shape) if shown.counts is None else jnp.asarray(shown.counts)
    courses = None if shown.courses is None else jnp.asarray(shown.courses, jnp.int32)
    return Sample(steps.take(jnp.asarray(shown.rows)), counts, courses)
