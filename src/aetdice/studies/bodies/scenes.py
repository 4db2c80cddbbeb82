"""The tables of the studies: whose data, how rewards are reshaped, what the columns are, what is trained."""

import abc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float

from aetdice.data import Episodes, Transform
from aetdice.data.transforms import Chain, MinMax, Safety, SpeedAndEffort, WithoutBonus
from aetdice.objectives import (
    AlphaFair,
    CobbDouglas,
    Linear,
    Objective,
    Select,
    convex,
    in_float64,
    lsr,
    safe_cobb_douglas,
    ser,
)
from aetdice.objectives import Chain as Chained

WEIGHTS = {"[1, 0]": (1.0, 0.0), "[0.5, 0.5]": (0.5, 0.5), "[0, 1]": (0.0, 1.0)}
RHOS = (0.1, 0.5)
EFFICIENCY_SCALES = {0.1: 10.0, 0.5: 0.2}
"""What brings E[R0^ρ / R1^(1-ρ)] of these bodies to order one, for the safe objective; by ρ."""
TRAINED_EPSILON = 1.0
"""Added to the cost in training, where costs are hundreds: with the 1e-3 of the scores, F(0) would be a
thousand times the value of a whole episode, and nearly all of r̃ would be its decay."""
SAFE_EPSILON = 20.0
"""The same for the safe objective, which is paid along the way, where that decay still is large."""
SAFE_BETA_SCALE = 0.1
"""Its β, in units of the study's grid."""


class Population(NamedTuple):
    """Rows of a table that one algorithm trains together: their objectives share a form."""

    name: str
    algorithm: str
    rows: Mapping[str, Objective]
    clones: str | None = None
    """The row of its twins, where no other population has the same ones."""
    terminal_reward: bool = False
    """Whether AETDICE is paid at the end of an episode; docs/bodies-study.md has the trials that chose it."""
    beta_scale: float = 1.0
    """Of the study's grid: the slope of a logarithm falls as its value rises, and β should with it."""


@dataclass(frozen=True)
class Scene(abc.ABC):
    """One table: a body's data of one quality, its rewards reshaped."""

    kind: ClassVar[str]
    body: str
    quality: str

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """A word for parts and files."""

    @property
    @abc.abstractmethod
    def title(self) -> str:
        """Words for tables and figures."""

    @abc.abstractmethod
    def transform(self, reference: Episodes) -> Transform:
        """How rewards are reshaped, with constants from a reference dataset."""

    @abc.abstractmethod
    def columns(self, horizon: int) -> dict[str, Objective]:
        """What is scored, by heading."""

    @abc.abstractmethod
    def populations(self, horizon: int) -> list[Population]:
        """What is trained."""


@dataclass(frozen=True)
class Convex(Scene):
    """F = exp(R/50) on min-max-normalised rewards, with linear and with concave G."""

    kind: ClassVar[str] = "convex"
    scale: tuple[float, float]

    @property
    def name(self) -> str:
        return f"{self.quality}-{'-'.join(f'{c:g}' for c in self.scale)}"

    @property
    def title(self) -> str:
        return f"{self.body}, {self.quality}, c = ({', '.join(f'{c:g}' for c in self.scale)})"

    def transform(self, reference: Episodes) -> Transform:
        return MinMax.fit(reference, self.scale)

    def columns(self, horizon: int) -> dict[str, Objective]:
        del horizon
        return {**{f"w={name}": _exponential(np.array(w)) for name, w in WEIGHTS.items()}, "G, F": CONCAVE}

    def populations(self, horizon: int) -> list[Population]:
        del horizon
        return [
            Population("aetdice", "aetdice", {"AETDICE": CONCAVE}, "cloning"),
            Population("aet-esr", "aetdice", _weighted("AET-ESR ", _exponential)),
            Population("esr-iql", "esr-iql", _weighted("ESR-IQL ", _exponential)),
            Population("optidice", "optidice", _weighted("Lin-", lsr), "cloning, state only"),
            Population("fairdice", "fairdice", {"FairDICE": ser()}),
        ]


@dataclass(frozen=True)
class Efficiency(Scene):
    """Cobb-Douglas: speed against effort, with the alive bonus in speed or as the distance alone.

    Walker2d has the safety channel, too, and the safe objectives.
    """

    kind: ClassVar[str] = "efficiency"
    bonus: bool

    @property
    def form(self) -> str:
        return "bonus" if self.bonus else "distance"

    @property
    def name(self) -> str:
        return f"{self.body}-{self.quality}-{self.form}"

    @property
    def title(self) -> str:
        form = "with the alive bonus" if self.bonus else "distance only"
        return f"{self.body}, {self.quality}, {form}"

    @property
    def safe(self) -> bool:
        return self.body == "walker2d"

    def transform(self, reference: Episodes) -> Transform:
        del reference
        first = () if self.bonus else (WithoutBonus((1.0, 0.0)),)
        return Chain((*first, SpeedAndEffort(), *((Safety(),) if self.safe else ())))

    def columns(self, horizon: int) -> dict[str, Objective]:
        plain = {f"CD({rho:g})": cobb_douglas(rho) for rho in RHOS}
        return {**plain, **{f"safe-{name}": safe for name, safe in self._safe(horizon).items()}}

    def populations(self, horizon: int) -> list[Population]:
        plain = {f"CD({rho:g})": cobb_douglas(rho, TRAINED_EPSILON) for rho in RHOS}
        safe = _named("AETDICE safe-", self._safe(horizon, SAFE_EPSILON))
        return [
            Population("aetdice", "aetdice", _named("AETDICE ", plain), "cloning", terminal_reward=True),
            Population("esr-iql", "esr-iql", _named("ESR-IQL ", plain)),
            *([Population("safe", "aetdice", safe, beta_scale=SAFE_BETA_SCALE)] if safe else []),
        ]

    def _safe(self, horizon: int, epsilon: float = 1e-3) -> dict[str, Objective]:
        return {
            f"CD({rho:g})": safe_cobb_douglas(
                rho, float(horizon), efficiency_scale=EFFICIENCY_SCALES[rho], epsilon=epsilon
            )
            for rho in (RHOS if self.safe else ())
        }


def cobb_douglas(rho: float, epsilon: float = 1e-3) -> Objective:
    """E[R_0^ρ / R_1^(1-ρ)], whatever other channels there are."""
    utility = Chained((Select((0, 1)), CobbDouglas(rho, epsilon)))
    return Objective(utility, Linear(), "Cobb-Douglas", {"rho": np.float64(rho)})


def in_units_of_data(objective: Objective, returns: Float[np.ndarray, "episodes m"]) -> Objective:
    """A linear G divided by the data's own value: the same optimum, and one grid of β serves all.

    Any other G is left alone: where it is a logarithm, multipliers are relative already.
    """
    if not isinstance(objective.aggregation, Linear):
        return objective
    weights = objective.aggregation.weights / float(in_float64(objective)(returns))
    return Objective(objective.utility, Linear(weights), objective.label, objective.shown)


def _exponential(weights: Float[np.ndarray, " m"]) -> Objective:
    return convex(aggregation=Linear(weights))


def _weighted(method: str, make: Callable[..., Objective]) -> dict[str, Objective]:
    return {f"{method}{name}": make(np.array(weights)) for name, weights in WEIGHTS.items()}


def _named(method: str, objectives: Mapping[str, Objective]) -> dict[str, Objective]:
    return {f"{method}{name}": objective for name, objective in objectives.items()}


CONCAVE = convex(aggregation=AlphaFair())
"""Σ log E[exp(R_i / 50)]."""
