"""From documented names to the equations, figures and tables of the paper, read from paper.md."""

import re
from functools import cache
from pathlib import Path

from public_names import documented

PAGE = Path(__file__).parents[1] / "paper.md"
NAMED = re.compile(r"\[`(\w+)`\]\(\.\./src/([\w./-]+\.py)\)")


@cache
def places() -> dict[str, str]:
    """Labels of the paper as a list in reStructuredText, by full name."""
    found: dict[str, list[str]] = {}
    for row in PAGE.read_text(encoding="utf-8").splitlines():
        label = row.strip("| ").split(" | ")[0].replace("`", "``")
        for name, path in NAMED.findall(row):
            home = documented().get((path, name))
            if home and label and not re.fullmatch(r"D\d+", label) and row.startswith("| "):
                found.setdefault(home, []).append(label)
    return {home: f"{'; '.join(labels)} (:doc:`/paper`)" for home, labels in found.items()}
