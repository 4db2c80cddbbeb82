"""The command line: `aetdice solve`, `aetdice demo`."""

import json
import sys
import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console

from aetdice import __version__
from aetdice.demo import demo
from aetdice.envs import FairTaxi, TwoStep
from aetdice.errors import InputError
from aetdice.exact import Optimum, TabularMOMDP, solve
from aetdice.exact.reader import read_momdp
from aetdice.objectives import OBJECTIVES, Objective, named_aggregation, named_objective, written_objective
from aetdice.report.tables import optimum_report
from aetdice.results import versions


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
    """The same for G of bsr."""
    continuation: Literal["quadratic", "linear"] | None = None
    """How they are continued (default quadratic)."""
    utility: str | None = None
    """One's own F in r0, r1, … and horizon, for example "log(r0), r1 - 0.8*horizon"."""
    aggregation: str | None = None
    """One's own G: linear, log, alpha-fair, smooth-min, or an expression in k0, k1, …"""

    def build(self, objectives: int, horizon: int) -> Objective:
        given = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}
        if self.utility is not None:
            extra = sorted(set(given) - {"utility", "aggregation", "threshold"})
            if extra:
                raise InputError(f"--utility replaces a named objective, so it takes no --{_flag(extra[0])}")
            threshold = 1.0 if self.threshold is None else self.threshold
            return written_objective(
                self.utility, self.aggregation or "linear", objectives, horizon, threshold
            )
        name = given.pop("objective", None)
        if name is None:
            raise InputError(f'say which objective: --objective {" | ".join(OBJECTIVES)}, or --utility "…"')
        if self.aggregation is not None:
            given["aggregation"] = named_aggregation(self.aggregation)
        if name == "safe-cobb-douglas":
            given["horizon"] = float(horizon)
        if self.weights is not None and len(self.weights) != objectives:
            raise InputError(
                f"--weights needs {objectives} numbers, one per objective, not {len(self.weights)}"
            )
        return named_objective(name, given)


@dataclass(frozen=True)
class Solve:
    """Options that every problem shares."""

    options: Annotated[ObjectiveOptions, tyro.conf.arg(name="")]
    json: bool = False
    """Print one JSON object instead of tables."""


@dataclass(frozen=True)
class SolveTwoStep(Solve):
    """The two-step MOMDP of the paper's Figure 1."""

    first_reward: tuple[float, float] = (0.0, 0.0)
    """The reward of the first step."""

    def run(self) -> None:
        _solve("two-step", TabularMOMDP.from_environment(TwoStep(self.first_reward)), self)


@dataclass(frozen=True)
class SolveFairTaxi(Solve):
    """Fair-Taxi; cells are row,column from the top left."""

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

    def run(self) -> None:
        taxi = FairTaxi(
            size=self.size,
            origins=tuple(map(_cell, self.origins)),
            destinations=tuple(map(_cell, self.destinations)),
            start=_cell(self.start),
            horizon=self.horizon,
            deliveries=self.deliveries,
            penalties=self.penalties,
            scale=self.scale,
        )
        _solve("fair-taxi", TabularMOMDP.from_environment(taxi), self)


@dataclass(frozen=True)
class SolveFile(Solve):
    """Your own finite MOMDP from a .json or .npz file."""

    path: tyro.conf.Positional[Path] = Path("problem.json")
    """Keys: transition, reward, initial, horizon; optional: terminal, objectives."""

    def run(self) -> None:
        _solve(self.path.name, read_momdp(self.path), self)


@dataclass(frozen=True)
class Demo:
    """Solve the two-step problem and Fair-Taxi exactly; print tables, write a picture."""

    out: Path = Path("demo")
    """Where the picture and its data go."""

    def run(self) -> None:
        demo(self.out, Console())


SolveCommand = (
    Annotated[SolveTwoStep, tyro.conf.subcommand("two-step")]
    | Annotated[SolveFairTaxi, tyro.conf.subcommand("fair-taxi")]
    | Annotated[SolveFile, tyro.conf.subcommand("file")]
)
Command: Any = Annotated[
    Annotated[
        SolveCommand, tyro.conf.subcommand("solve", description="The certified optimum of a finite problem.")
    ]
    | Annotated[Demo, tyro.conf.subcommand("demo")],
    tyro.conf.OmitArgPrefixes,
]
DESCRIPTION = "Offline nonlinear multi-objective reinforcement learning: J = G(E[F(R)])."


def _solve(name: str, momdp: TabularMOMDP, command: Solve) -> None:
    started = time.perf_counter()
    objective = command.options.build(momdp.reward.shape[3], momdp.horizon)
    optimum = solve(momdp, objective)
    seconds = time.perf_counter() - started
    regime = objective.regime(momdp.reward.shape[3])
    if command.json:
        print(json.dumps(_record(name, regime, optimum, seconds)))
    else:
        Console().print(optimum_report(name, regime, optimum, seconds))
    if optimum.gap > 1e-6:
        print(f"warning: not certified to 1e-6; the gap is {optimum.gap:.1e}", file=sys.stderr)


def _record(problem: str, regime: str, optimum: Optimum, seconds: float) -> dict[str, Any]:
    outcomes = zip(optimum.outcomes.returns.tolist(), optimum.outcomes.probabilities.tolist(), strict=True)
    return {
        "problem": problem,
        "objective": optimum.objective.name,
        "regime": regime,
        "value": optimum.value,
        "gap": optimum.gap,
        "expected_utilities": optimum.expected_utilities.tolist(),
        "expected_returns": optimum.outcomes.mean.tolist(),
        "multiplier": optimum.multiplier.tolist(),
        "outcomes": [{"returns": r, "probability": p} for r, p in outcomes],
        "objectives": list(optimum.policy.space.momdp.objectives),
        "augmented_states": optimum.policy.space.size,
        "seconds": seconds,
        "versions": versions(),
    }


def _cell(text: str) -> tuple[int, int]:
    try:
        row, column = map(int, text.split(","))
    except ValueError:
        raise InputError(f"a cell is row,column, for example 0,2; not {text!r}") from None
    return row, column


def _flag(name: str) -> str:
    return name.replace("_", "-")


def main(arguments: list[str] | None = None) -> None:
    """Run one command; a user's mistake is one line on stderr and exit code 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments == ["--version"]:
        print(f"aetdice {__version__}")
        return
    command: Any = tyro.cli(Command, prog="aetdice", description=DESCRIPTION, args=arguments)
    try:
        command.run()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
