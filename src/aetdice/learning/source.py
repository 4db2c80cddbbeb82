"""Where updates and passes get their steps from: all of them on the device, or read from the disk."""

import abc
import gc
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Int, UInt32

from aetdice.algorithms import Algorithm, Weighing
from aetdice.algorithms.cloning import CloningState
from aetdice.algorithms.sampling import SampleWeights, Shown
from aetdice.algorithms.streamed import StoredWeighing, finish_stored, start_stored, weigh_stored
from aetdice.data.device import DeviceData
from aetdice.data.mapping import return_freed_memory
from aetdice.data.stored import StoredSteps
from aetdice.learning.devices import where_trained
from aetdice.learning.draws import Draw, Draws, Sample, sample_of
from aetdice.learning.extraction import behaviour_shares, sample_weights_for, stored_cdf
from aetdice.learning.population import member, stack, train_policies, train_values
from aetdice.learning.setup import Setup
from aetdice.learning.streaming import Reader, search


class Source(abc.ABC):
    """Steps for the stages of training; what they do with them is the same for every source."""

    @abc.abstractmethod
    def start(self, values: Any) -> Any:
        """First-stage states as all steps have them, given those begun on `setup.training`."""

    @abc.abstractmethod
    def train_values(self, states: Any, steps: Int[Array, " chunk"]) -> Any:
        """A chunk of first-stage updates."""

    @abc.abstractmethod
    def finish(self, state: Any, hyper: Any) -> Any:
        """What follows a member's last update."""

    @abc.abstractmethod
    def weigh(self, state: Any, hyper: Any) -> Weighing | StoredWeighing:
        """A member's sample weights and metrics."""

    @abc.abstractmethod
    def draw_of(self, weighing: Any) -> tuple[Draw, Float[np.ndarray, " courses"] | None]:
        """How a policy's steps are drawn, and how likely its courses are; None weighs for a twin."""

    @abc.abstractmethod
    def train_policies(self, states: CloningState, draws: Draws, steps: Int[Array, " chunk"]) -> CloningState:
        """A chunk of cloning updates."""

    @abc.abstractmethod
    def sample(self, shown: Shown) -> Sample:
        """The steps that a policy is shown."""

    @abc.abstractmethod
    def rest(self) -> None:
        """A stage is over."""

    @abc.abstractmethod
    def close(self) -> None:
        """Nothing is asked for any more."""


def extract(source: Source, setup: Setup, values: Any) -> tuple[list[dict[str, Array]], Draws]:
    """Every member's metrics, and what all policies learn from: members are weighed one after the other."""
    plain, plain_chances = source.draw_of(None)
    metrics, chances, draws = [], [], Draws(len(setup.policy_seeds), setup.config.extraction)
    source.rest()
    for index in range(len(setup.choices)):
        weighing = source.weigh(member(values, index), member(setup.hypers, index))
        metrics.append(weighing.metrics)
        draw, likely = source.draw_of(weighing)
        del weighing
        draws.add(draw, setup.policy_seeds[index], plain)
        chances.append(likely)
        del draw
    for seed in setup.policy_seeds[len(metrics) :]:
        draws.add(plain, seed, plain)
        chances.append(plain_chances)
    source.rest()
    if plain_chances is not None:
        draws.chances = np.stack([each for each in chances if each is not None])
    return metrics, draws


class Resident(Source):
    """All steps are on the device."""

    spread: DeviceData | None = None

    def __init__(self, setup: Setup) -> None:
        self.setup = setup

    @cached_property
    def behaviour(self) -> Float[np.ndarray, " steps"]:
        return behaviour_shares(self.setup.training)

    def start(self, values: Any) -> Any:
        return values

    def train_values(self, states: Any, steps: Int[Array, " chunk"]) -> Any:
        setup = self.setup
        data = self._spread(setup.seeds, setup.algorithm.batch)
        return train_values(states, setup.algorithm, setup.hypers, setup.seeds, data, steps)

    def finish(self, state: Any, hyper: Any) -> Any:
        return self.setup.algorithm.finish(state, hyper, self.setup.training)

    def weigh(self, state: Any, hyper: Any) -> Weighing:
        return weigh(self.setup.algorithm, state, hyper, self.setup.training)

    def draw_of(self, weighing: Weighing | None) -> tuple[Draw, Float[np.ndarray, " courses"] | None]:
        setup = self.setup
        weights = sample_weights_for(weighing, self.behaviour, setup.training, setup.config, setup.courses)
        chances = None if weights.courses is None else np.asarray(weights.courses.chances)
        return partial(_drawn, weights), chances

    def train_policies(self, states: CloningState, draws: Draws, steps: Int[Array, " chunk"]) -> CloningState:
        setup, shown = self.setup, draws.of(int(steps[0]), int(steps[-1]) + 1)
        return train_policies(
            states,
            jax.device_put(shown),
            setup.policy_rates,
            setup.policy_seeds,
            self._spread(setup.policy_seeds, setup.config.extraction.batch),
            steps,
            setup.config.extraction,
        )

    def sample(self, shown: Shown) -> Sample:
        return sample_of(self.setup.training.steps, shown)

    def rest(self) -> None:
        self.spread = None

    def close(self) -> None:
        pass

    def _spread(self, seeds: Int[Array, " members"], batch: int) -> DeviceData:
        """The data on all devices of a stage."""
        if self.spread is None:
            self.spread = where_trained(self.setup.training, len(seeds), batch)
        return self.spread


class Streamed(Source):
    """Steps stay on disk.

    What was compiled for a stage that is over goes with it: programs take more memory than steps.
    """

    def __init__(self, setup: Setup, stored: StoredSteps) -> None:
        self.setup, self.stored, self.reader = setup, stored, Reader(stored)

    def start(self, values: Any) -> Any:
        return stack(self._each(values, start_stored))

    def train_values(self, states: Any, steps: Int[Array, " chunk"]) -> Any:
        setup = self.setup
        total = setup.algorithm.steps
        return self.reader.train_values(states, setup.algorithm, setup.hypers, setup.seeds, steps, total)

    def finish(self, state: Any, hyper: Any) -> Any:
        return finish_stored(self.setup.algorithm, state, hyper, self.stored)

    def weigh(self, state: Any, hyper: Any) -> StoredWeighing:
        return weigh_stored(self.setup.algorithm, state, hyper, self.stored)

    def draw_of(self, weighing: StoredWeighing | None) -> tuple[Draw, None]:
        own = self.stored.behaviour() if weighing is None else weighing.weights
        cdf = stored_cdf(own, self.stored, self.setup.config.extraction)
        return (lambda bits: Shown(search(cdf, np.asarray(bits)))), None

    def train_policies(self, states: CloningState, draws: Draws, steps: Int[Array, " chunk"]) -> CloningState:
        setup = self.setup
        return self.reader.train_policies(
            states, draws, setup.policy_rates, setup.policy_seeds, steps, setup.config.extraction
        )

    def sample(self, shown: Shown) -> Sample:
        return self.reader.sample(shown)

    def rest(self) -> None:
        forget_programs()

    def close(self) -> None:
        self.reader.close()

    def _each(self, values: Any, make: Callable[..., Any]) -> list[Any]:
        setup = self.setup
        return [
            make(setup.algorithm, member(values, i), member(setup.hypers, i), self.stored)
            for i in range(len(setup.choices))
        ]


@eqx.filter_jit
def _drawn(weights: SampleWeights, bits: UInt32[Array, "*n"]) -> Shown:
    return weights.drawn_by(bits)


def source_of(setup: Setup) -> Source:
    """Where the training data of a setup is."""
    return Resident(setup) if setup.stored is None else Streamed(setup, setup.stored)


def forget_programs() -> None:
    """Let go of all that JAX has compiled; what is used again is compiled again."""
    jax.clear_caches()  # type: ignore[no-untyped-call]
    gc.collect()
    return_freed_memory()


@eqx.filter_jit
def weigh(algorithm: Algorithm, state: Any, hyper: Any, data: DeviceData) -> Weighing:
    """What a member makes of data on the device."""
    return algorithm.weigh(state, hyper, data)
