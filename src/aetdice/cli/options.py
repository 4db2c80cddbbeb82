"""Options that several commands share."""

from dataclasses import dataclass, fields
from typing import Any, Literal

from aetdice.envs import FairTaxi
from aetdice.errors import InputError
from aetdice.objectives import Objective, described_objective


@dataclass(frozen=True)
class ObjectiveOptions:
    """J = G(E[F(R)]): a named objective, or one written as expressions."""

    objective: str | None = None
    """lsr, ser, esr, bsr, convex, cobb-douglas or safe-cobb-douglas."""
    alpha: float | None = None
    """Of bsr: from 0 (ESR) to 1 (SER)."""
    rho: float | None = None
    """Of the Cobb-Douglas objectives."""
    weights: tuple[float, ...] | None = None
    """One per objective, for lsr, ser, esr and bsr."""
    threshold: float | None = None
    """Below it logarithms and powers are continued (default 1)."""
    aggregation_threshold: float | None = None
    """The same for G, of bsr or of one's own objective (default 1)."""
    continuation: Literal["quadratic", "linear"] | None = None
    """How they are continued (default quadratic)."""
    utility: str | None = None
    """One's own F in r0, r1, … and horizon, for example "log(r0), r1 - 0.8*horizon"."""
    aggregation: str | None = None
    """One's own G: linear, log, alpha-fair, smooth-min, or an expression in k0, k1, …"""

    def given(self) -> dict[str, Any]:
        """What was said, by name."""
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}

    def build(self, objectives: int, horizon: int) -> Objective:
        return described_objective(self.given(), objectives, horizon)


@dataclass(frozen=True)
class TaxiOptions:
    """Fair-Taxi's layout; cells are row,column from the top left."""

    size: int = 9
    """Cells per side."""
    origins: tuple[str, ...] = ("0,0", "8,8")
    """Where each group waits."""
    destinations: tuple[str, ...] = ("0,2", "8,6")
    """Where each group wants to go."""
    start: str = "4,4"
    """The taxi's first cell."""
    horizon: int = 50
    """Steps per episode."""
    deliveries: tuple[float, ...] | None = None
    """Reward of a delivery, per group, before scaling (default 60 30 30 …)."""
    penalties: tuple[float, ...] | None = None
    """Reward of an invalid pick-up or drop-off, per group, before scaling (default -20 -10 …)."""
    scale: float = 60.0
    """What every reward is divided by."""

    def arguments(self) -> dict[str, Any]:
        return {
            "size": self.size,
            "origins": tuple(map(_cell, self.origins)),
            "destinations": tuple(map(_cell, self.destinations)),
            "start": _cell(self.start),
            "horizon": self.horizon,
            "deliveries": self.deliveries,
            "penalties": self.penalties,
            "scale": self.scale,
        }

    def build(self) -> FairTaxi:
        return FairTaxi(**self.arguments())


def _cell(text: str) -> tuple[int, int]:
    try:
        row, column = map(int, text.split(","))
    except ValueError:
        raise InputError(f"a cell is row,column, for example 0,2; not {text!r}") from None
    return row, column
