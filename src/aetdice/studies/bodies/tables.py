"""Tables of the studies of the bodies, from their merged results."""

from collections.abc import Mapping
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from aetdice.report.tables import columns
from aetdice.studies.bodies.measure import BEHAVIOURS
from aetdice.studies.words import number, words_of

BEST = "bold green"
LARGE = 1e5
PLAIN, SAFE = "AETDICE ", "AETDICE safe-"
CHOICE = (
    "bold: the largest mean; ± is one standard deviation over seeds; "
    "AETDICE's β is selected without the environment, the settings of baselines by looking at it"
)
SAFE_NOTE = "the paper's safe-CD scores are not those of the formula it prints"


def tables(merged: Mapping[str, Any]) -> list[RenderableType]:
    """Everything of one scene that has results."""
    shown: list[RenderableType] = []
    rows = merged["rows"]
    if rows:
        shown += [scores(merged), verdict(merged)]
    if rows or merged["references"]:
        shown.append(behaviours(merged))
    if any(name.startswith(SAFE) for name in rows):
        shown.append(safety(merged))
    shown += [settings(name, row) for name, row in rows.items() if len(row["settings"]) > 1]
    return shown


def scores(merged: Mapping[str, Any]) -> Table:
    """Trained for (rows) × evaluated under (columns): mean ± s.d. over seeds, the paper's in brackets."""
    headings = merged["columns"]
    table = columns(f"{merged['title']} (the paper's)", "method", *headings)
    best = {heading: ranked(merged, heading)[0] for heading in headings}
    for name, row in merged["rows"].items():
        cells = []
        for heading in headings:
            cell = Text(spread(row["scores"][heading]), style=BEST if best[heading] == name else "")
            if heading in row["paper"]:
                mean, sd = row["paper"][heading]
                cell.append(f" ({spread({'mean': mean, 'sd': sd})})", style="not bold dim")
            cells.append(cell)
        table.add_row(Text(name), *cells)
    for name, reference in merged["references"].items():
        values = (reference["scores"][heading]["value"] for heading in headings)
        table.add_row(name, *(number(value) for value in values), style="dim")
    if any(heading.startswith("safe") for heading in headings):
        table.caption = SAFE_NOTE
    return table


def spread(score: Mapping[str, Any]) -> str:
    """Four digits of the mean, three from 10⁵ on, and the spread to the same place."""
    mean, sd = score["mean"], score["sd"]
    if abs(mean) >= LARGE:
        power = len(f"{abs(mean):.0f}") - 1
        small = spread({"mean": mean / 10**power, "sd": None if sd is None else sd / 10**power})
        return f"({small})e{power}" if sd is not None else f"{small}e{power}"
    digits = 3 if abs(mean) < 1 else 2 if abs(mean) < 100 else 1 if abs(mean) < 1000 else 0
    return f"{mean:.{digits}f}" + ("" if sd is None else f" ± {sd:.{digits}f}")


def verdict(merged: Mapping[str, Any]) -> Text:
    """In every column, how far the best row is ahead of the next, in standard deviations over seeds."""
    text = Text()
    for heading in merged["columns"]:
        first, *others = ranked(merged, heading)
        if not others:
            continue
        one, two = (merged["rows"][name]["scores"][heading] for name in (first, others[0]))
        lead = one["mean"] - two["mean"]
        sd = max(one["sd"] or 0.0, two["sd"] or 0.0)
        words = f"{heading}: {first} leads {others[0]} by {lead:.3g}"
        text.append(words + (f" ({lead / sd:.1f} s.d.)\n" if sd else "\n"))
    return text.append(CHOICE, style="dim")


def behaviours(merged: Mapping[str, Any]) -> Table:
    """What the episodes bring, how many stay up, and where Ants go."""
    going = any(row["shares"] for row in merged["rows"].values())
    table = columns(
        f"{merged['title']}: mean returns, and shares of episodes",
        "method",
        "setting",
        *merged["objectives"],
        "upright",
        *(BEHAVIOURS if going else ()),
    )
    for name, row in merged["rows"].items():
        up, shares = row["upright"], row["shares"] or {}
        table.add_row(
            Text(name),
            words_of(row["params"]),
            *(number(value) for value in row["mean_returns"]),
            f"{up['mean']:.1%}" + ("" if up["sd"] is None else f" ± {up['sd']:.1%}"),
            *(f"{share:.0%}" for share in shares.values()),
        )
    for name, reference in merged["references"].items():
        returns = (number(value) for value in reference["mean_returns"])
        table.add_row(name, "", *returns, f"{reference['upright']:.1%}", style="dim")
    return table


def safety(merged: Mapping[str, Any]) -> Table:
    """What the safety utility does: who stays up, and what it costs in efficiency (95 % intervals)."""
    table = columns(
        f"{merged['title']}: without and with the safety utility", "for", "trained", "upright", "score"
    )
    for heading in (heading for heading in merged["columns"] if not heading.startswith("safe")):
        for words, method in (("without", PLAIN), ("with", SAFE)):
            row = merged["rows"].get(f"{method}{heading}")
            if row is None:
                continue
            score = row["scores"][heading]
            table.add_row(
                heading,
                words,
                f"{row['upright']['mean']:.1%}",
                f"{number(score['mean'])} ± {number(score['half'])}",
            )
    return table


def settings(name: str, row: Mapping[str, Any]) -> Table:
    """Every setting of a row, what the rule has to go by, and the score of those that walked."""
    table = columns(f"{name}: every setting", "setting", "score", "claimed", "flow", "sample size")
    table.caption = row["rule"]
    for setting in row["settings"]:
        known, score = setting["diagnostics"], setting["score"]
        size = known.get("effective_sample_size")
        table.add_row(
            words_of(setting["params"]) + (" ← selected" if setting["selected"] else ""),
            "" if score is None else number(score),
            *(number(known.get(key)) for key in ("held_out_claimed_value", "flow_violation")),
            "" if size is None else f"{size:.1%}",
        )
    return table


def ranked(merged: Mapping[str, Any], heading: str) -> list[str]:
    """The rows of a column, best first."""
    return sorted(merged["rows"], key=lambda name: -merged["rows"][name]["scores"][heading]["mean"])
