"""The pages of the documentation, and what stands in their code blocks."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXECUTED = [
    "README.md",
    "CONTRIBUTING.md",
    *sorted(page.relative_to(ROOT).as_posix() for page in (ROOT / "docs").rglob("*.md")),
]
PAGES = [*EXECUTED, "CHANGELOG.md"]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def prose_of(page: str) -> str:
    """A page without its code blocks."""
    return FENCE.sub("", text_of(page))


def fences(page: str, *languages: str) -> list[str]:
    """The code blocks of a page in some languages."""
    return [body for language, body in FENCE.findall(text_of(page)) if language in languages]


def commands(page: str) -> list[tuple[str, str]]:
    """What follows each `$` of the page's consoles, and what is shown to come of it."""
    entries = []
    for block in fences(page, "console", "sh"):
        for entry in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = entry.partition("\n")
            entries.append((command, output))
    return entries
