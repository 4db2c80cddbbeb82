"""Results as terminal tables."""

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from aetdice.exact import Optimum

SHOWN = 12


def optimum_report(problem: str, regime: str, optimum: Optimum, seconds: float) -> Group:
    """What an exact solution attains and what its episodes look like."""
    names = optimum.policy.space.momdp.objectives
    facts = Table.grid(padding=(0, 2))
    for label, value in (
        ("problem", f"{problem}, {optimum.policy.space.size:,} augmented states"),
        ("objective", f"{optimum.objective.name} ({regime})"),
        ("value", f"{optimum.value:.6f}   (no policy exceeds it by more than {optimum.gap:.1e})"),
        ("expected utilities", vector(optimum.expected_utilities)),
        ("expected returns", vector(optimum.outcomes.mean)),
        ("time", f"{seconds:.1f} s"),
    ):
        facts.add_row(Text(label, style="bold"), Text(value))
    outcomes = Table(title="what an episode brings", title_justify="left", title_style="bold")
    outcomes.add_column("probability", justify="right")
    for name in names:
        outcomes.add_column(name, justify="right")
    pairs = list(zip(optimum.outcomes.probabilities, optimum.outcomes.returns, strict=True))
    for probability, returns in pairs[:SHOWN]:
        outcomes.add_row(f"{probability:.4f}", *(f"{entry:.4f}" for entry in returns))
    if len(pairs) > SHOWN:
        rest = sum(probability for probability, _ in pairs[SHOWN:])
        outcomes.add_row(f"{rest:.4f}", f"{len(pairs) - SHOWN} more", *[""] * (len(names) - 1))
    return Group(facts, Text(), outcomes)


def cross_table(
    title: str, rows: Mapping[str, Sequence[float]], columns: Sequence[str], last: Mapping[str, str]
) -> Table:
    """Trained for (rows) against evaluated under (columns), the best of each column in bold."""
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("optimal for")
    for column in columns:
        table.add_column(column, justify="right")
    table.add_column("behaviour")
    best = [max(values) for values in zip(*rows.values(), strict=True)]
    for name, values in rows.items():
        cells = [
            Text(f"{value:.3f}", style="bold green" if value >= top - 1e-9 else "")
            for value, top in zip(values, best, strict=True)
        ]
        table.add_row(name, *cells, last[name])
    return table


def vector(values: Iterable[float]) -> str:
    return "(" + ", ".join(f"{value:.6g}" for value in values) + ")"
