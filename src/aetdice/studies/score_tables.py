"""The tables of a study's summary, on a terminal and as Markdown."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from aetdice.evaluation.estimates import Estimate, leaders
from aetdice.report.tables import columns
from aetdice.studies.merging import edges_of
from aetdice.studies.study import Summary

BEST = "bold green"
LARGE = 1e5
SYMBOLS = {"beta": "β", "expectile": "τ", "temperature": "T", "sample_size": "size"}
LEGEND = {
    False: "bold: best or tied; ± is one standard deviation over seeds",
    True: "bold: best or tied; ± is a 95 % interval of the mean, over seeds and episodes",
}
LOOKED = ", settings chosen by looking at the environment"
CLAIMS = ("claimed_value", "held_out_claimed_value")
"""What ratios say of J; those of a discounted flow speak of the discounted return, another quantity."""


def tables_of(summary: Summary) -> list[RenderableType]:
    """Everything of one table that has results."""
    rows, shown = summary["rows"], list[RenderableType]()
    if rows:
        shown += [score_table(summary), verdict(summary)]
    if any(row["best"] != row["shown"] for row in rows.values()):
        shown += [score_table(summary, "best", LOOKED), verdict(summary, "best")]
    if any(setting(row).get("gap_shares") for row in rows.values()):
        shown.append(gap_table(summary))
    if rows or summary["references"]:
        shown += [quantity_table(summary, group) for group in (None, *groups_of(summary))]
    several = {name: row for name, row in rows.items() if len(row["settings"]) > 1}
    return shown + [setting_table(name, row, summary["horizon"]) for name, row in several.items()]


def setting(row: Mapping[str, Any], choice: str = "shown") -> Any:
    """A row's setting that is shown, selected by the rule, or best in the environment."""
    return row["settings"][row[choice]]


def estimates(summary: Summary, choice: str = "shown") -> dict[str, dict[str, Estimate]]:
    """Column by column the estimate of every row."""
    scores = {name: setting(row, choice)["scores"] for name, row in summary["rows"].items()}
    return {
        heading: {name: Estimate.read(own[heading]) for name, own in scores.items() if heading in own}
        for heading in summary["columns"]
    }


def score_table(summary: Summary, choice: str = "shown", words: str = " (the paper's)") -> Table:
    """Trained for (rows) × evaluated under (columns), the paper's in brackets, references below."""
    table, found = columns(f"{summary['title']}{words}", "method", *summary["columns"]), {}
    for heading, column in estimates(summary, choice).items():
        found[heading] = {
            name: Text(with_spread(e.record(), summary["interval"])) for name, e in column.items()
        }
        for name in leaders(column):
            found[heading][name].stylize(BEST)
    for name, row in summary["rows"].items():
        for heading, printed in row["paper"].items():
            found[heading][name].append(f" ({alone(printed[0])})", style="not bold dim")
        table.add_row(Text(name), *(column.get(name, "") for column in found.values()))
    for name, reference in summary["references"].items():
        values = (alone(reference["scores"].get(heading)) for heading in summary["columns"])
        table.add_row(Text(name), *values, style="dim")
    return table


def verdict(summary: Summary, choice: str = "shown") -> Text:
    """In every column: by how much the best leads, and whether a row that was trained for it is best."""
    text, rows = Text(), summary["rows"]
    for heading, column in estimates(summary, choice).items():
        if len(column) < 2:
            continue
        own = [name for name in column if rows[name]["column"] == heading]
        winners = [name for name in leaders(column) if name in own]
        first, second = sorted(column, key=lambda name: -column[name].mean)[:2]
        lead = column[first].mean - column[second].mean
        sd = max(column[first].sd or 0.0, column[second].sd or 0.0)
        text.append(f"{heading}: {first} leads {second} by {lead:.3g}")
        text.append(f" ({lead / sd:.1f} s.d.)" if sd else "")
        if winners:
            text.append(f"; best or tied of those trained for it: {', '.join(winners)}")
        elif own:
            text.append("; NOT won by a row trained for it", style="bold red")
        text.append("\n")
    for name, row in rows.items():
        if edges := edge_words(row, choice):
            text.append(f"{name}: {edges}\n", style="yellow")
    return text.append(LEGEND[summary["interval"]], style="dim")


def edge_words(row: Mapping[str, Any], choice: str = "shown") -> str:
    """Which hyper-parameters of the setting shown lie on the edge of what was tried."""
    own = setting(row, choice)["params"]
    edges = edges_of(row["settings"], row[choice])
    return ", ".join(f"{SYMBOLS.get(n, n)} {own[n]:g} is the {words} tried" for n, words in edges.items())


def gap_table(summary: Summary) -> Table:
    """How much of the way from the twin to the best known is closed, and what the ratios claim."""
    table = columns(
        f"{summary['title']}: gap closed; where ratios claim more than the score, extraction is the gap",
        *("method", "setting", "score", "claimed", "held out", "twin", "data", "best known", "gap closed"),
        *("best setting", "its gap"),
    )
    for name, row in summary["rows"].items():
        chosen, best = setting(row), setting(row, "best")
        if not chosen.get("gap_shares"):
            continue
        claims = chosen["diagnostics"] if row["algorithm"] == "aetdice" else {}
        known = summary["references"][row["optimum"]]["value"]
        table.add_row(
            Text(name),
            in_words(chosen["params"]),
            with_spread(chosen["trained"], summary["interval"]),
            *map(number, (*map(claims.get, CLAIMS), chosen["twin"], row["data_score"], known)),
            gap_words(chosen["gap_shares"]),
            in_words(best["params"]),
            gap_words(best["gap_shares"]),
        )
    return table


def groups_of(summary: Summary) -> dict[str, list[str]]:
    """The names in every group of quantities that the rows have."""
    found = (setting(row)["quantities"] for row in summary["rows"].values())
    return {group: list(numbers) for quantities in found for group, numbers in quantities.items()}


def quantity_table(summary: Summary, group: str | None) -> Table:
    """One group of quantities; without one, mean and variance of the returns."""
    names = summary["objectives"] if group is None else groups_of(summary)[group]
    title = "returns over episodes, mean (variance)" if group is None else group
    table = columns(f"{summary['title']}: {title}", "method", "setting", *names)
    for name, row in summary["rows"].items():
        chosen = setting(row)
        if group is not None:
            cells = [percent(found) for found in chosen["quantities"].get(group, {}).values()]
        else:
            variances = chosen["variances"] or [None] * len(names)
            pairs = zip(chosen["mean_returns"], variances, strict=True)
            cells = [number(mean) + ("" if v is None else f" ({number(v)})") for mean, v in pairs]
        table.add_row(Text(name), in_words(chosen["params"]), *cells)
    for name, reference in summary["references"].items():
        found = reference.get("quantities", {}).get(group) if group else reference.get("mean_returns")
        if found:
            known = (f"{v:.1%}" for v in found.values()) if group else map(number, found)
            table.add_row(Text(name), "", *known, style="dim")
    return table


def setting_table(name: str, row: Mapping[str, Any], horizon: int) -> Table:
    """Every setting of a row: its score, what the rule goes by, and which one is taken."""
    heads = ("setting", "paper's β", "score", "claimed", "held out", "flow", "sample size", "gap closed")
    table = columns(f"{name}: every setting", *heads)
    table.caption = Text(row["rule"])
    for i, each in enumerate(row["settings"]):
        beta, known, trained = each["params"].get("beta"), each["diagnostics"], each["trained"]
        marks = [mark for mark in ("selected", "best") if row[mark] == i]
        size = known.get("effective_sample_size")
        table.add_row(
            in_words(each["params"]) + (f" ← {', '.join(marks)}" if marks else ""),
            f"{beta / horizon:.1e}" if beta and row["algorithm"] == "aetdice" else "",
            "" if trained is None else with_spread(trained, interval=True),
            *(number(known.get(key)) for key in (*CLAIMS, "flow_violation")),
            "" if size is None else f"{size:.1%}",
            gap_words(each.get("gap_shares")),
        )
    return table


def markdown(summary: Summary) -> str:
    """Scores as Markdown, the best of a column bold, the paper's in brackets; last, shares of episodes."""
    columns, groups = estimates(summary), groups_of(summary)
    last = list(groups)[-1:]
    best = {heading: max(column, key=lambda name: column[name].mean) for heading, column in columns.items()}
    lines = [[summary["title"], *columns, *(", ".join(groups[group]) for group in last)]]
    lines.append(["---"] * len(lines[0]))
    for name, row in summary["rows"].items():
        line = [name]
        for heading, column in columns.items():
            own = with_spread(column[name].record(), summary["interval"])
            printed = row["paper"].get(heading)
            line.append(f"**{own}**" if best[heading] == name else own)
            line[-1] += f" ({alone(printed[0])})" if printed else ""
        shares = setting(row)["quantities"]
        lines.append([*line, *(_percents(v["mean"] for v in shares[group].values()) for group in last)])
    for name, reference in summary["references"].items():
        values = (alone(reference["scores"].get(heading)) for heading in columns)
        shares = reference.get("quantities", {})
        lines.append([name, *values, *(_percents(shares.get(group, {}).values()) for group in last)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def with_spread(score: Mapping[str, Any], interval: bool = False) -> str:
    """Four digits of the mean, three from 10⁵ on, and its spread or interval to the same place."""
    mean, sd = score["mean"], score["half" if interval else "sd"]
    if abs(mean) >= LARGE:
        power = len(f"{abs(mean):.0f}") - 1
        small = with_spread({"mean": mean / 10**power, "sd": None if sd is None else sd / 10**power})
        return f"({small})e{power}" if sd is not None else f"{small}e{power}"
    digits = 3 if abs(mean) < 1 else 2 if abs(mean) < 100 else 1 if abs(mean) < 1000 else 0
    return f"{mean:.{digits}f}" + ("" if sd is None else f" ± {sd:.{digits}f}")


def alone(value: float | None) -> str:
    """A value without a spread."""
    return "" if value is None else with_spread({"mean": value, "sd": None})


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def in_words(params: Mapping[str, Any]) -> str:
    """A setting in short."""
    return " ".join(f"{SYMBOLS[name]} {value:g}" for name, value in params.items() if name in SYMBOLS)


def gap_words(values: Sequence[float | None] | None) -> str:
    """Shares of the gap: their mean, and each seed's."""
    known = [value for value in values or () if value is not None]
    each = f" ({', '.join(f'{share:.1%}' for share in known)})" if len(known) > 1 else ""
    return f"{np.mean(known):.1%}{each}" if known else ""


def percent(found: Mapping[str, Any]) -> str:
    return f"{found['mean']:.1%}" + ("" if found["sd"] is None else f" ± {found['sd']:.1%}")


def _percents(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.0%}" for value in values)
