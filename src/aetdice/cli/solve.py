"""`aetdice solve`: certified optima."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from aetdice.cli.options import ObjectiveOptions, Shown, TaxiOptions

if TYPE_CHECKING:
    from aetdice.exact import Optimum, TabularMOMDP


@dataclass(frozen=True)
class Solve:
    """Options that every problem shares."""

    options: ObjectiveOptions
    shown: Shown = Shown()


@dataclass(frozen=True)
class SolveTwoStep(Solve):
    """The two-step MOMDP of the paper's Figure 1."""

    first_reward: tuple[float, float] = (0.0, 0.0)
    """The reward of the first step."""

    def run(self) -> None:
        from aetdice.envs import TwoStep
        from aetdice.exact import TabularMOMDP

        _solve("two-step", lambda: TabularMOMDP.from_environment(TwoStep(self.first_reward)), self)


@dataclass(frozen=True)
class SolveFairTaxi(Solve):
    """Fair-Taxi; cells are row,column from the top left."""

    taxi: TaxiOptions = TaxiOptions()

    def run(self) -> None:
        from aetdice.exact import TabularMOMDP

        _solve("fair-taxi", lambda: TabularMOMDP.from_environment(self.taxi.build()), self)


@dataclass(frozen=True)
class SolveFile(Solve):
    """Your own finite MOMDP from a .json or .npz file."""

    path: tyro.conf.Positional[Path] = Path("problem.json")
    """Keys: transition, reward, initial, horizon; optional: terminal, objectives."""

    def run(self) -> None:
        from aetdice.exact.reader import read_momdp

        _solve(self.path.name, lambda: read_momdp(self.path), self)


SolveCommand = (
    Annotated[SolveTwoStep, tyro.conf.subcommand("two-step")]
    | Annotated[SolveFairTaxi, tyro.conf.subcommand("fair-taxi")]
    | Annotated[SolveFile, tyro.conf.subcommand("file")]
)


def _solve(name: str, build: "Callable[[], TabularMOMDP]", command: Solve) -> None:
    from aetdice.exact import solve
    from aetdice.report.tables import optimum_table

    started = time.perf_counter()
    momdp = build()
    objective = command.options.build(momdp.reward.shape[3], momdp.horizon)
    optimum = solve(momdp, objective)
    seconds = time.perf_counter() - started
    regime = objective.regime(momdp.reward.shape[3])
    command.shown.answer(
        _record(name, regime, optimum, seconds), lambda: optimum_table(name, regime, optimum, seconds)
    )
    if optimum.gap > 1e-6:
        print(f"warning: not certified to 1e-6; the gap is {optimum.gap:.1e}", file=sys.stderr)


def _record(problem: str, regime: str, optimum: "Optimum", seconds: float) -> dict[str, Any]:
    from aetdice.files import versions

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
