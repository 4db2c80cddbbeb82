"""Options that several commands share; what they make is imported when it is made, so that help is quick."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from aetdice.errors import InputError
from aetdice.progress import Progress
from aetdice.report.progress import console_progress

if TYPE_CHECKING:
    from rich.console import RenderableType

    from aetdice.envs import FairTaxi
    from aetdice.objectives import Objective


@dataclass(frozen=True)
class Quiet:
    """Of what is said on the way."""

    quiet: Annotated[bool, tyro.conf.arg(aliases=["-q"])] = False
    """No progress and no remarks; results and errors remain."""

    @contextmanager
    def progress(self) -> Iterator[Progress | None]:
        """What to tell how far something has come, on stderr."""
        if self.quiet:
            yield None
            return
        with console_progress() as progress:
            yield progress


@dataclass(frozen=True)
class Shown(Quiet):
    """Of what is printed."""

    json: bool = False
    """Print one JSON object, and nothing else, on stdout."""

    def say(self, *remarks: str) -> None:
        """What was found and decided on the way, a line each."""
        from aetdice.report.terminal import say

        for remark in () if self.quiet else remarks:
            say(remark, sys.stderr if self.json else sys.stdout)

    def answer(self, record: Mapping[str, Any], page: "Callable[[], RenderableType | list[str]]") -> None:
        """The result: for scripts its record, for people a table or sentences."""
        if self.json:
            print(json.dumps(record))
            return
        from aetdice.report.terminal import console, say

        made = page()
        if not isinstance(made, list):
            console().print(made)
            return
        for sentence in made:
            say(sentence)


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

    def build(self, objectives: int, horizon: int) -> "Objective":
        from aetdice.objectives import described_objective

        return described_objective(self.given(), objectives, horizon)


READERS = {"slip": ("fair-taxi", "pointmaze-2obj", "pointmaze-3obj")}
"""The environments that read an option of the taxi's, where others do too."""


@dataclass(frozen=True)
class TaxiOptions:
    """Fair-Taxi's layout, and slip; cells are row,column from the top left."""

    size: int | None = None
    """Cells per side (default 9)."""
    origins: tuple[str, ...] | None = None
    """Where each group waits (default 0,0 8,8)."""
    destinations: tuple[str, ...] | None = None
    """Where each group wants to go (default 0,2 8,6)."""
    start: str | None = None
    """The taxi's first cell (default 4,4)."""
    horizon: int | None = None
    """Steps per episode (default 50)."""
    deliveries: tuple[float, ...] | None = None
    """Reward of a delivery, per group, before scaling (default 60 30 30 …)."""
    penalties: tuple[float, ...] | None = None
    """Reward of an invalid pick-up or drop-off, per group, before scaling (default -20 -10 …)."""
    scale: float | None = None
    """What every reward is divided by (default 60)."""
    slip: float | None = None
    """Probability that a move goes another way; in a maze, that a step's force is random (default 0)."""

    def arguments(self) -> dict[str, Any]:
        """Those that were given, as the environment takes them."""
        cells: dict[str, Callable[[Any], Any]] = {"start": _cell, "origins": _cells, "destinations": _cells}
        given = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}
        return {name: cells[name](value) if name in cells else value for name, value in given.items()}

    def arguments_for(self, env: str) -> dict[str, Any]:
        """The same for the environment of a run; `InputError` if it reads none of them."""
        arguments = self.arguments()
        for name in arguments:
            readers = READERS.get(name, ("fair-taxi",))
            if env not in readers:
                raise InputError(f"{env} does not read --{name}; it belongs to {', '.join(readers)}")
        return arguments

    def build(self) -> "FairTaxi":
        from aetdice.envs import FairTaxi

        return FairTaxi(**self.arguments())


def _cell(text: str) -> tuple[int, int]:
    try:
        row, column = map(int, text.split(","))
    except ValueError:
        raise InputError(f"a cell is row,column, for example 0,2; not {text!r}") from None
    return row, column


def _cells(texts: tuple[str, ...]) -> tuple[tuple[int, int], ...]:
    return tuple(map(_cell, texts))
