"""Numbers and settings in words."""

from collections.abc import Mapping
from typing import Any


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def words_of(params: Mapping[str, Any]) -> str:
    """A setting in short."""
    names = {"beta": "β", "expectile": "τ", "temperature": "T"}
    return " ".join(f"{names[name]} {value:g}" for name, value in params.items() if name in names)
