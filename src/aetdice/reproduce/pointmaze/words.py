"""Numbers, settings and schedules in words."""

from collections.abc import Mapping
from typing import Any

import numpy as np


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def shares_of(shares: list[float] | None) -> str:
    if shares is None:
        return ""
    each = f" ({', '.join(f'{share:.0%}' for share in shares)})" if len(shares) > 1 else ""
    return f"{np.mean(shares):.0%}{each}"


def vector(values: Any) -> str:
    return f"({', '.join(f'{value:.4g}' for value in values)})"


def words_of(params: Mapping[str, Any]) -> str:
    """A setting in short."""
    names = {"beta": "β", "expectile": "τ", "temperature": "T"}
    return " ".join(f"{names[name]} {value:g}" for name, value in params.items() if name in names)


def route(part: Mapping[str, Any], horizon: int) -> str:
    """A schedule in words, legs of no length left out."""
    words = [part["goals"][0]]
    for goal, time in zip(part["goals"][1:], part["switch_times"], strict=True):
        if time == 0:
            words = [goal]
        elif time < horizon:
            words.append(f"at {time} {goal}")
    return ", ".join(words)
