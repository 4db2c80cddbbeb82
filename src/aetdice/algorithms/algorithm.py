"""What an algorithm is to the trainer: it values a dataset's steps, for a policy to be cloned from."""

import abc
from typing import Any, NamedTuple

import equinox as eqx
from jaxtyping import Array, Float, Int, PRNGKeyArray

from aetdice.data.resident import ResidentData
from aetdice.networks import Encoder
from aetdice.objectives import Objective


class StepReport(NamedTuple):
    """What an algorithm makes of a whole dataset."""

    lessons: Float[Array, " steps"]
    """How often a policy should be shown each step, up to a factor."""
    metrics: dict[str, Array]
    """Numbers and short vectors that tell how far it has come."""


class Remedies(NamedTuple):
    """What to change about an algorithm whose policy is not what it should be."""

    further: str
    """Takes the policy further from the data."""
    closer: str
    """Keeps it closer to the data."""


class Algorithm(eqx.Module):
    """The first of training's two stages; the second clones a policy from `report(…).lessons`.

    A state is a tree of arrays. `init`, `update` and `report` are pure, so that populations are
    one `vmap` away; `finish` runs on the host, member by member.
    """

    sees_accrued: eqx.AbstractVar[bool]
    """Whether networks are shown the accrued reward."""
    sees_time: eqx.AbstractVar[bool]
    """Whether networks are shown the time."""
    steps: eqx.AbstractVar[int]
    """Updates of the first stage."""

    @property
    @abc.abstractmethod
    def sweeps(self) -> dict[str, float]:
        """Its own hyper-parameters, each with its default."""

    @property
    @abc.abstractmethod
    def remedies(self) -> Remedies | None:
        """What helps a policy too near the data or too far from it; None if it is meant to be the data's."""

    @abc.abstractmethod
    def check(self, objective: Objective, objectives: int) -> None:
        """`InputError` if the algorithm cannot optimise this objective of so many rewards."""

    @abc.abstractmethod
    def hyper(self, objective: Objective, learning_rate: float, **own: float) -> Any:
        """What may differ between members: a tree of traced values; `InputError` for one out of range."""

    @abc.abstractmethod
    def init(self, encoder: Encoder, hyper: Any, data: ResidentData, key: PRNGKeyArray) -> Any:
        """A fresh state."""

    @abc.abstractmethod
    def draw(self, key: PRNGKeyArray, data: ResidentData) -> Any:
        """Which rows of the data an update looks at: integers, so that many updates can be drawn ahead."""

    @abc.abstractmethod
    def update(self, state: Any, hyper: Any, data: ResidentData, rows: Any, step: Int[Array, ""]) -> Any:
        """One update on the rows drawn."""

    @abc.abstractmethod
    def finish(self, state: Any, hyper: Any, data: ResidentData) -> Any:
        """What follows the last update, on the host."""

    @abc.abstractmethod
    def report(self, state: Any, hyper: Any, data: ResidentData) -> StepReport:
        """Lessons and metrics over a whole dataset."""
