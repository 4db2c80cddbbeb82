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


class Draws:
    """What each policy is shown: its size is that of the updates, whatever that of the data."""

    updates: Any = None
    """`Shown`, by policy, update and place in the batch: a temporary file for each kind of number."""
    chances: Float[np.ndarray, "policies courses"] | None = None
    """How likely each policy's courses are; None where policies are no mixtures."""

    def __init__(self, policies: int, config: ExtractionConfig) -> None:
        self.policies, self.config = policies, config
        self.samples: list[Shown] = []
        """Of every policy, to compare it with others."""

    def add(self, draw: Draw, seed: Int[Array, ""], plain: Draw) -> None:
        """What the next policy is shown, plain data until it is warm; and samples of its own."""
        steps, batch = self.config.steps, self.config.batch
        warm, policy = round(self.config.warm_up * steps), len(self.samples)
        for begin, end, of in ((0, warm, plain), (warm, steps, draw)):
            size = max(1, min(PIECE // batch, end - begin))
            for place in range(begin, end, size):
                first = min(place, end - size)  # pieces of one size: each is compiled for
                part = of(bits_of_policy(seed, jnp.arange(first, first + size), batch))
                if self.updates is None:
                    self.updates = jax.tree.map(self._room, part)
                for whole, piece in zip(jax.tree.leaves(self.updates), jax.tree.leaves(part), strict=True):
                    whole[policy, first : first + size] = np.asarray(piece)
                    release(whole)
        self.samples.append(jax.tree.map(np.asarray, draw(sample_bits(jax.random.key(0), SAMPLES))))

    def _room(self, leaf: Array | np.ndarray) -> np.ndarray:
        return temporary((self.policies, self.config.steps, self.config.batch), leaf.dtype)

    def of(self, begin: int, end: int) -> Shown:
        """Of all policies in some updates: policies × updates × batch."""
        found: Shown = jax.tree.map(lambda leaf: np.array(leaf[:, begin:end]), self.updates)
        for leaf in jax.tree.leaves(self.updates):
            release(leaf)
        return found


@eqx.filter_jit
def sample_of(steps: Recorded, shown: Shown) -> Sample:
    """What a policy is shown, as it learns from it."""
    counts = jnp.ones(shown.rows.shape) if shown.counts is None else jnp.asarray(shown.counts)
    courses = None if shown.courses is None else jnp.asarray(shown.courses, jnp.int32)
    return Sample(steps.take(jnp.asarray(shown.rows)), counts, courses)
