"""Results as terminal tables."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from aetdice.exact import Optimum
from aetdice.report.fitting import FittingTable

SHOWN = 12


def optimum_table(problem: str, regime: str, optimum: Optimum, seconds: float) -> Group:
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
    outcomes = FittingTable(title="what an episode brings", title_justify="left", title_style="bold")
    outcomes.add_column("probability", justify="right")
    for name in names:
        outcomes.add_column(Text(name), justify="right")
    pairs = list(zip(optimum.outcomes.probabilities, optimum.outcomes.returns, strict=True))
    for probability, returns in pairs[:SHOWN]:
        outcomes.add_row(f"{probability:.4f}", *(f"{entry:.4f}" for entry in returns))
    if len(pairs) > SHOWN:
        rest = sum(probability for probability, _ in pairs[SHOWN:])
        outcomes.add_row(f"{rest:.4f}", f"{len(pairs) - SHOWN} more", *[""] * (len(names) - 1))
    return Group(facts, Text(), outcomes)


def columns(title: str, *names: str) -> Table:
    """An empty table: the first column for names, the others for numbers."""
    table = FittingTable(title=Text(title), title_justify="left", title_style="bold")
    for i, name in enumerate(names):
        table.add_column(Text(name), justify="right" if i else "left")
    return table


def vector(values: Iterable[float]) -> str:
    return "(" + ", ".join(f"{value:.6g}" for value in values) + ")"


def training_table(result: Mapping[str, Any], folder: Path) -> Group:
    """What a run attained for each objective, with twin, data and exact optimum beside it."""
    parts: list[Any] = [_summary(summary) for summary in result["by_objective"]]
    spaced = [part for pair in zip(parts, [Text()] * len(parts), strict=True) for part in pair][:-1]
    about = Table.grid(padding=(0, 2))
    read = ", ".join(f"{name} {value}" for name, value in result.get("chosen", {}).items())
    for label, words in (("from the data", read), ("files", f"{folder} ({result['seconds']:.0f} s)")):
        if words:
            about.add_row(Text(label.ljust(len("exact optimum")), style="bold"), Text(words))
    return Group(*spaced, about)


def _summary(summary: Mapping[str, Any]) -> Table:
    facts = Table.grid(padding=(0, 2))
    params = summary["selected"]["params"].items()
    chosen = ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in params
    )
    rows = {
        "objective": summary["objective"],
        "selected": f"{chosen} ({summary['selected']['rule']})",
        "data": f"{summary['data_score']:.4f}",
    }
    if summary["score"] is not None:
        rows |= {"cloning twin": f"{summary['twin_score']:.4f}", "learner": f"{summary['score']:.4f}"}
    if summary["exact_score"] is not None:
        rows["exact optimum"] = f"{summary['exact_score']:.4f}"
    if summary["gap_share"] is not None:
        rows["gap closed"] = f"{summary['gap_share']:.1%} of the way from the twin to the optimum"
    rows["verdict"] = f"{_trust(summary)}. {summary['verdict']}"
    if "estimate" in summary:
        rows |= estimate_rows(summary["estimate"])
    for label, value in rows.items():
        facts.add_row(Text(label, style="bold"), Text(value))
    return facts


def _trust(summary: Mapping[str, Any]) -> str:
    """A verdict is only as good as the estimate beside it, where there is one."""
    if not summary["trusted"]:
        return "not trusted"
    doubted = "estimate" in summary and summary["estimate"]["policy"]["support"]["word"] == "do not trust"
    return "not trusted, as its estimate is not" if doubted else "trusted"


def estimate_rows(estimate: Mapping[str, Any]) -> dict[str, str]:
    """What policy and twin would attain by logged episodes alone."""
    rows = {}
    for name, label in (("policy", "estimate"), ("twin", "of the twin")):
        found = estimate[name]
        between = f"({found['low']:.4f} to {found['high']:.4f} with {found['level']:.0%})"
        rows[label] = f"{found['value']:.4f} {between}, {found['support']['word']}"
    found = estimate["policy"]
    logged = found["logged"]
    rows["of the log"] = f"{logged['value']:.4f} ({logged['low']:.4f} to {logged['high']:.4f})"
    known = found["improvement"] is not None
    better = f"with a probability of {found['improvement']:.0%}" if known else "or not: that was not recorded"
    rows["better"] = f"than the log {better}"
    rows["support"] = f"{found['support']['words']}; "
    rows["support"] += f"{found['unseen']:,} of {found['episodes']:,} episodes were kept from it"
    rows["check"] = estimate["self_check"]["words"]
    return rows


def estimate_table(result: Mapping[str, Any]) -> Table:
    """The estimates of a run's member."""
    facts = Table.grid(padding=(0, 2))
    returns = result["policy"]["mean_returns"]
    known = {"objective": result["policy"]["objective"], **estimate_rows(result)}
    known["expected returns"] = vector(returns)
    known["expected utilities"] = vector(result["policy"]["expected_utilities"])
    for label, value in known.items():
        facts.add_row(Text(label, style="bold"), Text(value))
    return facts


def selection_table(result: Mapping[str, Any]) -> Group:
    """Estimates of several runs, the recommended one marked."""
    runs = Table()
    for name in ("", "run", "J", "90 % interval", "cloning twin", "support"):
        runs.add_column(name, justify="right" if name in ("J", "cloning twin") else "left")
    for each in result["candidates"]:
        policy, twin = each["estimate"]["policy"], each["estimate"]["twin"]
        runs.add_row(
            "→" if each["name"] == result["recommended"] else "",
            Text(each["name"]),
            f"{policy['value']:.4g}",
            f"{policy['low']:.4g} to {policy['high']:.4g}",
            f"{twin['value']:.4g}",
            policy["support"]["word"],
        )
    return Group(runs, Text(result["words"]))


def evaluation_table(result: Mapping[str, Any]) -> Group:
    """Policy and twin under every objective, with intervals, and what episodes bring."""
    title = Text(f"trained for {result['objective']}", style="bold")
    scores = FittingTable(title=title, title_justify="left")
    scores.add_column("evaluated under")
    for kind in ("policy", "twin"):
        scores.add_column(kind, justify="right")
    for name, score in result["policy"]["scores"].items():
        cells = [result[kind]["scores"][name] for kind in ("policy", "twin")]
        shown = (f"{c['value']:.4f} ({c['low']:.4f} to {c['high']:.4f})" for c in cells)
        scores.add_row(Text(name if name == "trained" else score["objective"]), *shown)
    if result["exact_score"] is not None:
        scores.add_row("trained, exact optimum", f"{result['exact_score']:.4f}", "")
    quantiles = FittingTable(title="returns of the policy", title_justify="left", title_style="bold")
    quantiles.add_column("quantile")
    for name in result["objectives"]:
        quantiles.add_column(Text(name), justify="right")
    for q, values in result["policy"]["quantiles"].items():
        quantiles.add_row(q, *(f"{value:.3f}" for value in values))
    common = [o for o in result["policy"]["outcomes"][:6] if o["share"] * result["policy"]["episodes"] >= 5]
    if not common:
        return Group(scores, quantiles)
    outcomes = Table(title="commonest outcomes", title_justify="left", title_style="bold")
    outcomes.add_column("share", justify="right")
    outcomes.add_column("returns")
    for outcome in common:
        outcomes.add_row(f"{outcome['share']:.3f}", vector(outcome["returns"]))
    return Group(scores, quantiles, outcomes)
