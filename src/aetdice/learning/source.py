"""Where updates and passes get their steps from: all of them on the device, or read from the disk."""

import abc
import gc
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt32

from aetdice.algorithms import Algorithm, Weighing
from aetdice.algorithms.cloning import CloningState
from aetdice.algorithms.sampling import SampleWeights, sample_rows
from aetdice.algorithms.streamed import StoredWeighing, finish_stored, start_stored, weigh_stored
from aetdice.data.device import DeviceData, Steps
from aetdice.data.mapping import return_freed_memory
from aetdice.data.stored import StoredSteps
from aetdice.learning.extraction import sample_weights_for, stored_cdf
from aetdice.learning.population import member, stack, train_policies, train_values
from aetdice.learning.setup import Setup
from aetdice.learning.streaming import Reader


class Sample(NamedTuple):
    """Steps, how much each counts, and the course that each shows of a mixture."""

    steps: Steps
    counts: Float[Array, " samples"]
    courses: Int[Array, " samples"] | None


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
    def weigh(self, values: Any) -> Sequence[Weighing | StoredWeighing]:
        """Every member's sample weights and metrics."""

    @abc.abstractmethod
    def sample_weights(self, weighings: Sequence[Any]) -> Any:
        """What every policy learns from, the twins' at the end."""

    def with_courses(self, states: CloningState, weights: Any) -> CloningState:
        """The policies, told how likely each of their courses is; these have one."""
        del weights
        return states

    @abc.abstractmethod
    def train_policies(
        self, states: CloningState, weights: Any, steps: Int[Array, " chunk"], until: int, *, plain: bool
    ) -> CloningState:
        """A chunk of cloning updates; on `plain` data all learn from what twins do."""

    @abc.abstractmethod
    def sample(self, weights: Any, index: int, key: PRNGKeyArray, count: int) -> Sample:
        """Steps as a policy learns from them."""

    @abc.abstractmethod
    def close(self) -> None:
        """Nothing is asked for any more."""


class Resident(Source):
    """All steps are on the device."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup

    def start(self, values: Any) -> Any:
        return values

    def train_values(self, states: Any, steps: Int[Array, " chunk"]) -> Any:
        setup = self.setup
        return train_values(setup.algorithm, states, setup.hypers, setup.seeds, setup.training, steps)

    def finish(self, state: Any, hyper: Any) -> Any:
        return self.setup.algorithm.finish(state, hyper, self.setup.training)

    def weigh(self, values: Any) -> list[Weighing]:
        return weighings(self.setup, values, self.setup.training)

    def sample_weights(self, weighings: Sequence[Any]) -> SampleWeights:
        setup = self.setup
        return sample_weights_for(weighings, setup.twin_count, setup.training, setup.config, setup.courses)

    def with_courses(self, states: CloningState, weights: Any) -> CloningState:
        if weights.courses is None:
            return states
        return eqx.tree_at(lambda s: s.policy.courses, states, weights.courses.chances)

    def train_policies(
        self, states: CloningState, weights: Any, steps: Int[Array, " chunk"], until: int, *, plain: bool
    ) -> CloningState:
        del until
        setup, shown = self.setup, weights.of_twins if plain else weights
        return train_policies(
            states,
            shown,
            setup.policy_rates,
            setup.policy_seeds,
            setup.training,
            steps,
            setup.config.extraction,
        )

    def sample(self, weights: Any, index: int, key: PRNGKeyArray, count: int) -> Sample:
        return _sampled(member(weights, index), self.setup.training.steps, key, count)

    def close(self) -> None:
        pass


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
        return self.reader.train_values(setup.algorithm, states, setup.hypers, setup.seeds, steps, total)

    def finish(self, state: Any, hyper: Any) -> Any:
        return finish_stored(self.setup.algorithm, state, hyper, self.stored)

    def weigh(self, values: Any) -> list[StoredWeighing]:
        forget_programs()
        return self._each(values, weigh_stored)

    def sample_weights(self, weighings: Sequence[Any]) -> list[UInt32[np.ndarray, " rows"]]:
        setup, extraction = self.setup, self.setup.config.extraction
        forget_programs()
        cdfs = [stored_cdf(each.weights, self.stored, extraction) for each in weighings]
        return cdfs + [stored_cdf(self.stored.behaviour(), self.stored, extraction)] * setup.twin_count

    def train_policies(
        self, states: CloningState, weights: Any, steps: Int[Array, " chunk"], until: int, *, plain: bool
    ) -> CloningState:
        setup, cdfs = self.setup, [weights[-1]] * len(weights) if plain else weights
        return self.reader.train_policies(
            states, cdfs, setup.policy_rates, setup.policy_seeds, steps, until, setup.config.extraction
        )

    def sample(self, weights: Any, index: int, key: PRNGKeyArray, count: int) -> Sample:
        return Sample(self.reader.sample(weights[index], key, count), jnp.ones(count), None)

    def close(self) -> None:
        self.reader.close()

    def _each(self, values: Any, make: Callable[..., Any]) -> list[Any]:
        setup = self.setup
        return [
            make(setup.algorithm, member(values, i), member(setup.hypers, i), self.stored)
            for i in range(len(setup.choices))
        ]


@eqx.filter_jit
def _sampled(weights: SampleWeights, steps: Steps, key: PRNGKeyArray, count: int) -> Sample:
    rows = sample_rows(weights.cdf, key, count)
    return Sample(steps.take(rows), weights.counts(rows), weights.courses_of(rows))


def source_of(setup: Setup) -> Source:
    """Where the training data of a setup is."""
    return Resident(setup) if setup.stored is None else Streamed(setup, setup.stored)


def weighings(setup: Setup, values: Any, data: DeviceData) -> list[Weighing]:
    """What every member makes of data on the device."""
    return [
        _weigh(setup.algorithm, member(values, i), member(setup.hypers, i), data)
        for i in range(len(setup.choices))
    ]


def forget_programs() -> None:
    """Let go of all that JAX has compiled; what is used again is compiled again."""
    jax.clear_caches()  # type: ignore[no-untyped-call]
    gc.collect()
    return_freed_memory()


@eqx.filter_jit
def _weigh(algorithm: Algorithm, state: Any, hyper: Any, data: DeviceData) -> Weighing:
    return algorithm.weigh(state, hyper, data)
