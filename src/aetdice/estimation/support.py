"""How much of what a policy does is in the data, in a word and with its reasons."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from aetdice.estimation.rollouts import Course

Word = Literal["supported", "extrapolating", "do not trust"]

MOST_UNKNOWN = {"supported": 0.01, "extrapolating": 0.1}
"""Share of the steps that nothing recorded tells of."""
MOST_THIN = {"supported": 0.05, "extrapolating": 0.25}
"""Share of the steps that rest on very few recorded ones."""
LEAST_EPISODES = {"supported": 20.0, "extrapolating": 6.0}
"""Recorded episodes that the estimate effectively rests on."""


@dataclass(frozen=True)
class Support:
    """What the data can tell about a policy."""

    word: Word
    words: str
    unknown: float
    thin: float
    effective_episodes: float
    distance_to_twin: float | None
    """E[log π - log π_twin] over the policy's own actions, along the log; None without a twin."""

    def record(self) -> dict[str, Any]:
        return asdict(self)


def judge_support(
    course: Course, distance: float | None, warnings: list[str], unknowable: str | None = None
) -> Support:
    """The worst of what speaks against it; a warning makes it extrapolating, the unknowable worse."""
    unknown, thin, effective_episodes = course.unknown, course.thin, course.effective_episodes
    grades: list[Word] = ["supported", *(["extrapolating"] if warnings else [])]  # type: ignore[list-item]
    grades += ["do not trust"] if unknowable else []
    grades += [_most(unknown, MOST_UNKNOWN), _most(thin, MOST_THIN), _least(effective_episodes)]
    order: list[Word] = ["supported", "extrapolating", "do not trust"]
    word = max(grades, key=order.index)
    reasons = [
        f"what {unknown:.1%} of its steps do was not recorded",
        f"{thin:.1%} rest on very few recorded ones",
        f"it rests on {effective_episodes:.0f} episodes",
        *warnings,
        *([unknowable] if unknowable else []),
    ]
    return Support(word, "; ".join(reasons), unknown, thin, effective_episodes, distance)


def _most(found: float, bounds: dict[str, float]) -> Word:
    if found <= bounds["supported"]:
        return "supported"
    return "extrapolating" if found <= bounds["extrapolating"] else "do not trust"


def _least(found: float) -> Word:
    if found >= LEAST_EPISODES["supported"]:
        return "supported"
    return "extrapolating" if found >= LEAST_EPISODES["extrapolating"] else "do not trust"
