"""A table of a study as its page explores it: rows, what was swept, and episodes that were kept."""

import math
import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from aetdice.page.policies import LABELS
from aetdice.page.statistics import distribution
from aetdice.page.words import score_text, symbol

POINTS = 40_000
"""Returns that all pictures show together, so that a page stays small."""
FEWEST, MOST = 40, 500
"""Of one policy."""
SWEPT = re.compile(r"(?P<family>[^\[:]+)\[(?P<parameter>\w+)=(?P<value>[-+.\de]+)\]: ")
"""An objective of a family with one parameter, such as BSR[alpha=0.5]."""
ENDING = re.compile(r", [a-z].*")
"""Of a row's name: what is different about it beside the objective."""
CLONING, RATE = "bc", "learning_rate"
Row = Mapping[str, Any]


class Samples(NamedTuple):
    """Distributions of episodes, as many of them as there is room for."""

    shown: list[dict[str, Any]]
    most: int

    def places(self, **found: Mapping[str, Any] | None) -> dict[str, int]:
        """By kind where the returns that were kept are now, as far as they were."""
        places = {}
        for kind, each in found.items():
            if returns := (each or {}).get("samples", {}).get("returns"):
                places[kind] = len(self.shown)
                self.shown.append(distribution(np.array(returns), self.most))
        return places


def samples_of(tables: Sequence[Mapping[str, Any]]) -> Samples:
    count = sum(len(row["settings"]) for table in tables for row in table["rows"].values())
    return Samples([], max(FEWEST, min(MOST, POINTS // max(1, 2 * count))))


def explored(table: Mapping[str, Any], samples: Samples) -> dict[str, Any]:
    """The table as the page has it."""
    rows, references = table["rows"], table["references"]
    twin = next((row["settings"][0] for row in rows.values() if row["algorithm"] == CLONING), None)
    shared = samples.places(twin=twin, data=references.get("data"))
    names = list(rows)
    return {
        "title": table["title"],
        "about": _about(table),
        "objectives": table["objectives"],
        "columns": list(table["columns"]),
        "sheets": [{**sheet, "title": _heading(sheet["title"], table["title"])} for sheet in table["sheets"]],
        "rows": [_row(name, row, references, shared, samples) for name, row in rows.items()],
        "groups": [
            {**group, "rows": [names.index(each) for each in group["rows"]]} for group in groups(rows)
        ],
        "references": [
            {"name": name, "mean": found.get("mean_returns")} for name, found in references.items()
        ],
    }


def groups(rows: Mapping[str, Row]) -> list[dict[str, Any]]:
    """Rows that differ in one parameter of their objective go together, in its order."""
    found: dict[tuple[str, ...], list[tuple[float, str]]] = {}
    for name, row in rows.items():
        swept, ending = SWEPT.match(row["objective"] or ""), ENDING.search(name)
        family = (swept["family"], swept["parameter"], row["algorithm"]) if swept else (name, "", "")
        value = float(swept["value"]) if swept else 0.0
        found.setdefault((*family, ending[0] if ending else ""), []).append((value, name))
    return [
        {
            "name": _shared_name([name for _, name in members], algorithm, ending),
            "parameter": symbol(parameter),
            "labels": [f"{value:g}" for value, _ in sorted(members)],
            "rows": [name for _, name in sorted(members)],
        }
        for (_, parameter, algorithm, ending), members in found.items()
    ]


def _shared_name(names: Sequence[str], algorithm: str, ending: str) -> str:
    """How their names begin, without what differs."""
    if len(names) == 1:
        return names[0]
    letters = zip(*(name.removesuffix(ending) for name in names), strict=False)
    start = "".join(each[0] for each in takewhile(lambda each: len(set(each)) == 1, letters))
    return (start.rstrip(" (.0123456789") or algorithm.upper()) + ending


def _heading(title: str, of: str) -> str:
    """A sheet's title below that of its table."""
    words = title.removeprefix(of).removeprefix(": ")
    return f"Scores{words}" if words.startswith((" (", ",")) else words[:1].upper() + words[1:]


def _about(table: Mapping[str, Any]) -> list[list[str]]:
    data = table["data"] or {}
    size = f"{data['episodes']:,} episodes, {data['steps']:,} steps" if "episodes" in data else ""
    known = {
        "objectives": ", ".join(table["objectives"]),
        "horizon": f"{table['horizon']} steps",
        "data": size,
        "SHA-256 of the data": data.get("sha256", ""),
    }
    return [[name, words] for name, words in known.items() if words]


def _row(
    name: str, row: Row, references: Mapping[str, Any], shared: Mapping[str, int], samples: Samples
) -> dict[str, Any]:
    best = references.get(row["optimum"] or "", {})
    known = [i for i, setting in enumerate(row["settings"]) if "scores" in setting]
    return {
        "name": name,
        "objective": _objective(row["objective"] or ""),
        "settings": [_setting(row, i, best, shared, samples) for i in known],
        "shown": known.index(row["shown"]),
        "optimum": row["optimum"],
        "best": best.get("scores"),
        "optimum_shares": best.get("quantities", {}),
    }


def _objective(name: str) -> str:
    """In short, such as BSR(α = 0.5)."""
    swept = SWEPT.match(name)
    if swept is None:
        return name.partition(":")[0]
    return f"{swept['family']}({symbol(swept['parameter'])}\u00a0=\u00a0{swept['value']})"


def _setting(
    row: Row, index: int, best: Mapping[str, Any], shared: Mapping[str, int], samples: Samples
) -> dict[str, Any]:
    """What is known of one setting."""
    setting = row["settings"][index]
    several = len(row["settings"]) > 1
    marks = {"selected": "selected without the environment", "best": "the best of those that were tried"}
    gaps = [gap for gap in setting.get("gap_shares") or () if gap is not None]
    others = {kind: at for kind, at in shared.items() if kind != "twin" or row["algorithm"] != CLONING}
    return {
        "label": _label(row, setting["params"]),
        "note": ", ".join(words for mark, words in marks.items() if several and row[mark] == index),
        "rows": _compared(row, setting, best),
        "gap": f"{np.mean(gaps):.1%}" if gaps else "",
        "scores": {heading: _score(score) for heading, score in setting["scores"].items()},
        "mean": setting["mean_returns"],
        "shares": {
            group: {name: found["mean"] for name, found in numbers.items()}
            for group, numbers in setting["quantities"].items()
        },
        "samples": {**others, **samples.places(policy=setting)},
    }


def _label(row: Row, params: Mapping[str, Any]) -> str:
    """A setting in short; that all have the usual learning rate says nothing."""
    rates = {setting["params"].get(RATE) for setting in row["settings"]}
    shown = {name: value for name, value in params.items() if name != RATE or len(rates) > 1}
    return ", ".join(f"{symbol(name)} = {_short(value)}" for name, value in shown.items())


def _compared(row: Row, setting: Mapping[str, Any], best: Mapping[str, Any]) -> list[dict[str, Any]]:
    """J under what is trained for: of the policy, its twin, the data and the best known."""
    if setting["trained"] is None:
        return []
    alone = {"twin": setting.get("twin"), "data": row["data_score"], "optimum": best.get("value")}
    rows = {"policy": _score(setting["trained"])}
    rows |= {kind: _score({"mean": value}) for kind, value in alone.items() if value is not None}
    labels = {**LABELS, "optimum": row["optimum"]}
    return [{"kind": kind, "label": labels[kind], "score": score} for kind, score in rows.items()]


def _score(found: Mapping[str, Any]) -> dict[str, Any]:
    """A mean with its 95 % interval, where it has one."""
    mean, half = found["mean"], found.get("half")
    score = {"value": mean}
    if half and math.isfinite(half):
        score |= {"low": mean - half, "high": mean + half}
    return {**score, "text": score_text(score)}


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)
