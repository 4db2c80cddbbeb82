"""From the outputs of a policy's graph to actions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float, Int, Shaped

    Outputs = Mapping[str, Float[np.ndarray, "..."]]


@dataclass(frozen=True)
class Discrete:
    """Numbers 0, 1, … with probabilities softmax(logits)."""

    def sample(self, outputs: Outputs, rng: np.random.Generator) -> Int[np.ndarray, " n"]:
        return draw(outputs["logits"], rng)

    def greedy(self, outputs: Outputs) -> Int[np.ndarray, " n"]:
        return np.argmax(outputs["logits"], axis=1)


@dataclass(frozen=True, eq=False)
class Continuous:
    """Vectors from a mixture of Gaussians, in units of half the range and clipped to it."""

    low: Float[np.ndarray, " a"]
    high: Float[np.ndarray, " a"]

    def sample(self, outputs: Outputs, rng: np.random.Generator) -> Float[np.ndarray, "n a"]:
        rows, which = np.arange(len(outputs["mean"])), draw(outputs["log_weights"], rng)
        mean, std = outputs["mean"][rows, which], np.exp(outputs["log_std"][rows, which])
        return self._action(mean + std * rng.standard_normal(mean.shape))

    def greedy(self, outputs: Outputs) -> Float[np.ndarray, "n a"]:
        likeliest = np.argmax(outputs["log_weights"], axis=1)
        return self._action(outputs["mean"][np.arange(len(likeliest)), likeliest])

    def _action(self, z: Shaped[np.ndarray, "n a"]) -> Float[np.ndarray, "n a"]:
        action = (self.low + self.high) / 2 + (self.high - self.low) / 2 * z
        return np.clip(action, self.low, self.high).astype(np.float32)


Head = Discrete | Continuous


def draw(logits: Float[np.ndarray, "n k"], rng: np.random.Generator) -> Int[np.ndarray, " n"]:
    """An index per row with probabilities softmax(logits): u below their cumulative sum."""
    cumulative = np.cumsum(np.exp(logits - logits.max(axis=1, keepdims=True), dtype=np.float64), axis=1)
    threshold = rng.random((len(logits), 1)) * cumulative[:, -1:]
    return (cumulative <= threshold).sum(axis=1)


def head_from(record: Mapping[str, Any]) -> Head:
    """The head of an artefact's `action` record."""
    if record["kind"] == "discrete":
        return Discrete()
    return Continuous(*(np.array(record[bound], dtype=np.float64) for bound in ("low", "high")))
