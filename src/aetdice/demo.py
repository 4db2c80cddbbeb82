"""The demonstration: exact optima of the two-step problem and of Fair-Taxi."""

from pathlib import Path

import numpy as np
from jaxtyping import Float
from rich.console import Console
from rich.progress import track
from rich.table import Table

from aetdice.envs import FairTaxi, TwoStep
from aetdice.exact import AugmentedSpace, Optimum, TabularMOMDP, enumerate_space, solve
from aetdice.objectives import Objective, bsr, esr, lsr, ser
from aetdice.report.figures import behaviour_shares
from aetdice.report.tables import cross_table
from aetdice.results import versions, write_json

ALPHAS = np.union1d(np.linspace(0, 1, 21), np.linspace(0.4, 0.6, 21)).round(3)
"""Closer together where the behaviour changes."""
BEHAVIOURS = {
    "only group 0": lambda r: r[0] > 0 and r[1] <= 0,
    "both groups": lambda r: r[0] > 0 and r[1] > 0,
    "only group 1": lambda r: r[0] <= 0 and r[1] > 0,
}


def demo(out: Path, console: Console) -> None:
    """Print both tables, and write the picture and its data to `out`."""
    console.print(figure_one(), "")
    space = enumerate_space(TabularMOMDP.from_environment(FairTaxi()))
    console.print(f"Fair-Taxi: {space.size:,} augmented states, every optimum certified", style="dim")
    console.print(taxi_table(space), "")
    shares: dict[str, list[float]] = {name: [] for name in BEHAVIOURS}
    for alpha in track(ALPHAS, "behaviours over α", console=console, transient=True):
        outcomes = solve(space, bsr(float(alpha))).outcomes
        for name, shows in BEHAVIOURS.items():
            shares[name].append(outcomes.probability(shows))
    data = {"alpha": ALPHAS.tolist(), "shares": shares, "problem": "fair-taxi", "versions": versions()}
    write_json(out / "behaviours.json", data)
    behaviour_shares(out / "behaviours.png", ALPHAS.tolist(), shares)
    console.print(f"behaviours over α: {out / 'behaviours.png'} (data beside it)")


def figure_one() -> Table:
    """The paper's Figure 1, recomputed, with the history-dependent case below it."""
    table = Table(title="two-step MOMDP (Figure 1)", title_justify="left", title_style="bold")
    for column in ("objective", "optimal policy", "exp SER", "exp ESR"):
        table.add_column(column, justify="left" if column in ("objective", "optimal policy") else "right")
    rows: list[tuple[str, TwoStep, Objective]] = [
        ("SER", TwoStep(), ser()),
        ("ESR", TwoStep(), esr()),
        ("linear (0.6, 0.4)", TwoStep(), lsr((0.6, 0.4))),
        ("ESR, first reward (2, 0)", TwoStep((2.0, 0.0)), esr()),
    ]
    for name, environment, objective in rows:
        optimum = solve(TabularMOMDP.from_environment(environment), objective)
        scores = [np.exp(optimum.outcomes.score(other)) for other in (ser(), esr())]
        table.add_row(name, _actions(environment, optimum), *(f"{score:.4f}" for score in scores))
    return table


def _actions(environment: TwoStep, optimum: Optimum) -> str:
    chances = optimum.policy.at(1, environment.first_reward, 1)
    return " + ".join(f"{chance:.3g} a{i + 1}" for i, chance in enumerate(chances) if chance > 1e-9)


def taxi_table(space: AugmentedSpace) -> Table:
    """Optimal for (rows) × evaluated under (columns) on Fair-Taxi."""
    objectives = {"ESR": esr(), "BSR 0.5": bsr(0.5), "SER": ser()}
    rows, behaviours = {}, {}
    for name, objective in objectives.items():
        outcomes = solve(space, objective).outcomes
        rows[name] = [outcomes.score(other) for other in objectives.values()]
        behaviours[name] = " or ".join(
            f"{probability:.2f} of {_deliveries(returns)}"
            for probability, returns in zip(outcomes.probabilities, outcomes.returns, strict=True)
        )
    title = "Fair-Taxi: optimal for × evaluated under, deliveries (group 0, group 1)"
    return cross_table(title, rows, list(objectives), behaviours)


def _deliveries(returns: Float[np.ndarray, " m"]) -> str:
    taxi = FairTaxi()
    counts = returns * taxi.scale / np.array(taxi.deliveries)
    return "(" + ", ".join(f"{count:.0f}" for count in counts) + ")"
