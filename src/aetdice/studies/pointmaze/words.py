"""Shares, returns and schedules in words."""

from collections.abc import Mapping
from typing import Any

import numpy as np


def shares_of(shares: list[float] | None) -> str:
    if shares is None:
        return ""
    each = f" ({', '.join(f'{share:.0%}' for share in shares)})" if len(shares) > 1 else ""
    return f"{np.mean(shares):.0%}{each}"


def vector(values: Any) -> str:
    return f"({', '.join(f'{value:.4g}' for value in values)})"


def route(part: Mapping[str, Any], horizon: int) -> str:
    """A schedule in words, legs of no length left out."""
    words = [part["goals"][0]]
    for goal, time in zip(part["goals"][1:], part["switch_times"], strict=True):
        if time == 0:
            words = [goal]
        elif time < horizon:
            words.append(f"at {time} {goal}")
    return ", ".join(words)
