"""What an algorithm is to the trainer: it weighs a dataset's steps, for a policy to be cloned from."""

import abc
from typing import Any, NamedTuple

import equinox as eqx
from jaxtyping import Array, Float, Int, PRNGKeyArray

from aetdice.data.device import DeviceData
from aetdice.networks import Encoder
from aetdice.objectives import Objective


class Weighing(NamedTuple):
    """What an algorithm makes of a whole dataset."""

    weights: Float[Array, " steps"]
    """Sample weights: how often a policy should see each step, up to a factor."""
    metrics: dict[str, Array]
    """Numbers and short vectors that tell how far it has come."""
    courses: Int[Array, " steps"] | None = None
    """Which kind of episode each step is from, for a policy to keep to; None where there are no kinds."""


class Hints(NamedTuple):
    """What to change about an algorithm whose policy is not what it should be."""

    further: str
    """Takes the policy further from the data."""
    closer: str
    """Keeps it closer to the data."""


class Algorithm(eqx.Module):
    """The first of training's two stages; the second clones a policy from `weigh(…).weights`.

    A state is a tree of arrays. `init`, `update` and `weigh` are pure, so that populations are
    one `vmap` away; `finish` runs on the host, member by member.
    """

    sees_accrued: eqx.AbstractVar[bool]
    """Whether networks are shown the accrued reward."""
    sees_time: eqx.AbstractVar[bool]
    """Whether networks are shown the time."""
    steps: eqx.AbstractVar[int]
    """Updates of the first stage."""
    ends: eqx.AbstractVar[bool]
    """Whether episodes end at the horizon; a discounted flow goes on where recording stopped."""
    n_step: eqx.AbstractVar[int]
    """Steps that one of its transitions spans: 1, or so many that parts of episodes stay together."""
    pools: eqx.AbstractVar[bool]
    """Whether it takes means over all that may follow a state and an action, where that is stochastic."""
    ignores: eqx.AbstractVar[tuple[str, ...]]
    """Settings that it does not read, by dotted name or group: setting one is a mistake."""

    @property
    @abc.abstractmethod
    def batch(self) -> int:
        """Rows that an update looks at."""

    @property
    @abc.abstractmethod
    def sweeps(self) -> dict[str, float]:
        """Its own hyper-parameters, each with its default."""

    @property
    @abc.abstractmethod
    def hints(self) -> Hints | None:
        """What helps a policy too near the data or too far from it; None if it is meant to be the data's."""

    @abc.abstractmethod
    def check(self, objective: Objective, objectives: int) -> None:
        """`InputError` if the algorithm cannot optimise this objective of so many rewards."""

    @abc.abstractmethod
    def hyper(self, objective: Objective, learning_rate: float, **own: float) -> Any:
        """What may differ between members: a tree of traced values; `InputError` for one out of range."""

    @abc.abstractmethod
    def init(self, encoder: Encoder, hyper: Any, data: DeviceData, key: PRNGKeyArray) -> Any:
        """A fresh state."""

    @abc.abstractmethod
    def draw(self, key: PRNGKeyArray, data: DeviceData) -> Any:
        """Which rows of the data an update looks at: integers, so that many updates can be drawn ahead."""

    @abc.abstractmethod
    def prepare(self, state: Any, hyper: Any, data: DeviceData, rows: Any, step: Int[Array, ""]) -> Any:
        """What an update makes of its rows and number whatever came before it: encoded states, rewards.

        It reads nothing of `state` that updates change, so that many batches can be prepared at once.
        """

    @abc.abstractmethod
    def update(self, state: Any, hyper: Any, batch: Any) -> Any:
        """One update on a batch that was prepared."""

    @abc.abstractmethod
    def finish(self, state: Any, hyper: Any, data: DeviceData) -> Any:
        """What follows the last update, on the host."""

    @abc.abstractmethod
    def weigh(self, state: Any, hyper: Any, data: DeviceData) -> Weighing:
        """Sample weights and metrics over a whole dataset."""


class WithoutUpdates(Algorithm):
    """One that learns nothing step by step: it weighs, perhaps after a `finish`."""

    @property
    def batch(self) -> int:
        return 0

    def draw(self, key: PRNGKeyArray, data: DeviceData) -> tuple[()]:
        del key, data
        return ()

    def prepare(
        self, state: Any, hyper: Any, data: DeviceData, rows: tuple[()], step: Int[Array, ""]
    ) -> tuple[()]:
        del state, hyper, data, rows, step
        return ()

    def update(self, state: Any, hyper: Any, batch: tuple[()]) -> Any:
        del hyper, batch
        return state
