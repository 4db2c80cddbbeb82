"""The tables of a study's summary, on a terminal and as Markdown."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from aetdice.evaluation.estimates import Estimate, leaders
from aetdice.report.sheets import Cell, Line, Remark, Sheet, line
from aetdice.studies.merging import edges_of
from aetdice.studies.study import Summary

LARGE = 1e5
SYMBOLS = {"beta": "β", "expectile": "τ", "temperature": "T", "sample_size": "size"}
LEGEND = {
    False: "bold: best or tied; ± is one standard deviation over seeds",
    True: "bold: best or tied; ± is a 95 % interval of the mean, over seeds and episodes",
}
LOOKED = ", settings chosen by looking at the environment"
CLAIMS = ("claimed_value", "held_out_claimed_value")
"""What ratios say of J; those of a discounted flow speak of the discounted return, another quantity."""


def sheets_of(summary: Summary) -> list[Sheet]:
    """Everything of one table that has results, its scores first."""
    rows, shown = summary["rows"], list[Sheet]()
    if rows:
        shown.append(score_sheet(summary))
    if any(row["best"] != row["shown"] for row in rows.values()):
        shown.append(score_sheet(summary, "best", LOOKED))
    if any(setting(row).get("gap_shares") for row in rows.values()):
        shown.append(gap_sheet(summary))
    if rows or summary["references"]:
        shown += [quantity_sheet(summary, group) for group in (None, *groups_of(summary))]
    several = {name: row for name, row in rows.items() if len(row["settings"]) > 1}
    return shown + [setting_sheet(name, row, summary["horizon"]) for name, row in several.items()]


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


def score_sheet(summary: Summary, choice: str = "shown", words: str = " (the paper's)") -> Sheet:
    """Trained for (rows) × evaluated under (columns), the paper's in brackets, references below."""
    found: dict[str, dict[str, Cell]] = {}
    for heading, column in estimates(summary, choice).items():
        best = leaders(column)
        found[heading] = {
            name: _scored(estimate, summary, heading, name, name in best) for name, estimate in column.items()
        }
    lines = [
        line(name, *(column.get(name, Cell("")) for column in found.values())) for name in summary["rows"]
    ]
    for name, reference in summary["references"].items():
        values = [reference["scores"].get(heading) for heading in summary["columns"]]
        lines.append(line(name, *(Cell(alone(value), value) for value in values), faint=True))
    headings = ("method", *summary["columns"])
    return Sheet(f"{summary['title']}{words}", headings, lines, tuple(verdict(summary, choice)))


def _scored(estimate: Estimate, summary: Summary, heading: str, name: str, best: bool) -> Cell:
    row = summary["rows"][name]
    printed = row["paper"].get(heading)
    return Cell(
        with_spread(estimate.record(), summary["interval"]),
        estimate.mean,
        best=best,
        own=row["column"] == heading,
        aside=alone(printed[0]) if printed else "",
    )


def verdict(summary: Summary, choice: str = "shown") -> list[Remark]:
    """In every column: by how much the best leads, and whether a row that was trained for it is best."""
    said, rows = list[Remark](), summary["rows"]
    for heading, column in estimates(summary, choice).items():
        if len(column) < 2:
            continue
        own = [name for name in column if rows[name]["column"] == heading]
        winners = [name for name in leaders(column) if name in own]
        first, second = sorted(column, key=lambda name: -column[name].mean)[:2]
        lead = column[first].mean - column[second].mean
        sd = max(column[first].sd or 0.0, column[second].sd or 0.0)
        words = (
            f"{heading}: {first} leads {second} by {lead:.3g}"
            if lead
            else f"{heading}: {first} and {second} are level"
        )
        words += f" ({lead / sd:.1f} s.d.)" if sd else ""
        if winners:
            words += f"; best or tied of those trained for it: {'; '.join(winners)}"
        elif own:
            words += "; NOT won by a row trained for it"
        said.append(Remark(words, "alarm" if own and not winners else ""))
    edges = ((name, edge_words(row, choice)) for name, row in rows.items())
    said += [Remark(f"{name}: {words}", "caution") for name, words in edges if words]
    return [*said, Remark(LEGEND[summary["interval"]], "faint")]


def edge_words(row: Mapping[str, Any], choice: str = "shown") -> str:
    """Which hyper-parameters of the setting shown lie on the edge of what was tried."""
    own = setting(row, choice)["params"]
    edges = edges_of(row["settings"], row[choice])
    return ", ".join(f"{SYMBOLS.get(n, n)} {own[n]:g} is the {words} tried" for n, words in edges.items())


def gap_sheet(summary: Summary) -> Sheet:
    """How much of the way from the twin to the best known is closed, and what the ratios claim."""
    lines = []
    for name, row in summary["rows"].items():
        chosen, best = setting(row), setting(row, "best")
        if not chosen.get("gap_shares"):
            continue
        claims = chosen["diagnostics"] if row["algorithm"] == "aetdice" else {}
        known = summary["references"][row["optimum"]]["value"]
        score = Cell(with_spread(chosen["trained"], summary["interval"]), chosen["trained"]["mean"])
        others = (*map(claims.get, CLAIMS), chosen["twin"], row["data_score"], known)
        setting_and_score = (name, in_words(chosen["params"]), score)
        gaps = (gap_cell(chosen["gap_shares"]), in_words(best["params"]), gap_cell(best["gap_shares"]))
        lines.append(line(*setting_and_score, *map(numeric, others), *gaps))
    headings = ("method", "setting", "score", "claimed", "held out", "twin", "data", "best known")
    return Sheet(
        f"{summary['title']}: gap closed; where ratios claim more than the score, extraction is the gap",
        (*headings, "gap closed", "best setting", "its gap"),
        lines,
    )


def groups_of(summary: Summary) -> dict[str, list[str]]:
    """The names in every group of quantities that the rows have."""
    found = (setting(row)["quantities"] for row in summary["rows"].values())
    return {group: list(numbers) for quantities in found for group, numbers in quantities.items()}


def quantity_sheet(summary: Summary, group: str | None) -> Sheet:
    """One group of quantities; without one, mean and variance of the returns."""
    names = summary["objectives"] if group is None else groups_of(summary)[group]
    title = "returns over episodes, mean (variance)" if group is None else group
    lines: list[Line] = []
    for name, row in summary["rows"].items():
        chosen = setting(row)
        if group is not None:
            found = chosen["quantities"].get(group, {}).values()
            cells = [Cell(percent(each), each["mean"]) for each in found]
        else:
            variances = chosen["variances"] or [None] * len(names)
            pairs = zip(chosen["mean_returns"], variances, strict=True)
            cells = [Cell(number(mean) + ("" if v is None else f" ({number(v)})"), mean) for mean, v in pairs]
        lines.append(line(name, in_words(chosen["params"]), *_filled(cells, len(names))))
    for name, reference in summary["references"].items():
        if group is None:
            cells = [numeric(mean) for mean in reference.get("mean_returns", ())]
        else:
            known = reference.get("quantities", {}).get(group, {}).values()
            cells = [Cell(f"{share:.1%}", share) for share in known]
        if cells:
            lines.append(line(name, "", *_filled(cells, len(names)), faint=True))
    headings = ("method", "setting", *names)
    unnamed = max((len(each.cells) for each in lines), default=0) - len(headings)  # before any row is done
    return Sheet(f"{summary['title']}: {title}", (*headings, *[""] * unnamed), lines)


def _filled(cells: Sequence[Cell], count: int) -> list[Cell]:
    """So many of them, the last ones empty."""
    return [*cells, *[Cell("")] * (count - len(cells))]


def setting_sheet(name: str, row: Mapping[str, Any], horizon: int) -> Sheet:
    """Every setting of a row: its score, what the rule goes by, and which one is taken."""
    lines = []
    for i, each in enumerate(row["settings"]):
        beta, known, trained = each["params"].get("beta"), each["diagnostics"], each["trained"]
        marks = [mark for mark in ("selected", "best") if row[mark] == i]
        size = known.get("effective_sample_size")
        own = beta / horizon if beta and row["algorithm"] == "aetdice" else None
        lines.append(
            line(
                in_words(each["params"]) + (f" ← {', '.join(marks)}" if marks else ""),
                Cell("" if own is None else f"{own:.1e}", own),
                Cell("") if trained is None else Cell(with_spread(trained, interval=True), trained["mean"]),
                *(numeric(known.get(key)) for key in (*CLAIMS, "flow_violation")),
                Cell("" if size is None else f"{size:.1%}", size),
                gap_cell(each.get("gap_shares")),
            )
        )
    headings = ("setting", "paper's β", "score", "claimed", "held out", "flow", "sample size", "gap closed")
    return Sheet(f"{name}: every setting", headings, lines, (Remark(row["rule"], "faint"),))


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


def numeric(value: float | None) -> Cell:
    return Cell(number(value), value)


def gap_cell(values: Sequence[float | None] | None) -> Cell:
    known = [value for value in values or () if value is not None]
    return Cell(gap_words(values), float(np.mean(known)) if known else None)


def gap_words(values: Sequence[float | None] | None) -> str:
    """Shares of the gap: their mean, and each seed's."""
    known = [value for value in values or () if value is not None]
    each = f" ({', '.join(f'{share:.1%}' for share in known)})" if len(known) > 1 else ""
    return f"{np.mean(known):.1%}{each}" if known else ""


def percent(found: Mapping[str, Any]) -> str:
    return f"{found['mean']:.1%}" + ("" if found["sd"] is None else f" ± {found['sd']:.1%}")


def _percents(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.0%}" for value in values)
