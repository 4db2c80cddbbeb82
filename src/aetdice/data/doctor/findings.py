"""What a doctor writes down."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

Level = Literal["error", "warning", "note"]
"""It cannot be learned from; it should be looked at; it is good to know."""


@dataclass(frozen=True)
class Finding:
    """One fact about a log."""

    kind: str
    level: Level
    where: str
    """File, episode, step or column; empty where it is all of them."""
    words: str
    count: int = 1


@dataclass(frozen=True)
class Report:
    """The findings, and what was decided while reading."""

    source: str
    notes: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def found(self) -> bool:
        """Whether anything should be looked at."""
        return any(finding.level != "note" for finding in self.findings)

    def record(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "source": self.source,
            "notes": list(self.notes),
            "findings": [asdict(finding) for finding in self.findings],
        }
