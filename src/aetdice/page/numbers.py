"""Numbers as people read them, and as a page keeps them."""

import math
from typing import Any

SIGNIFICANT = 5


def rounded(value: float) -> float:
    """A number with the digits that a picture needs."""
    return float(f"{value:.{SIGNIFICANT}g}")


def number(value: float, uncertainty: float = 0.0) -> str:
    """With two digits of its uncertainty, or four of its own."""
    scale, digits = (uncertainty, 2) if uncertainty > 0 else (abs(value), 4)
    if not 1e-12 < scale < 1e12:
        return f"{value:.4g}"
    decimals = max(0, min(4, digits - 1 - math.floor(math.log10(scale))))
    shown = f"{value:.{decimals}f}"
    return shown.removeprefix("-") if float(shown) == 0 else shown


def finite(content: Any) -> Any:
    """The same without numbers that JSON does not have: they become null."""
    if isinstance(content, dict):
        return {name: finite(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
