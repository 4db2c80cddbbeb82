"""Objectives as JSON: an objective made of this library's own parts can be written down and read back."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import equinox as eqx
import jax
import numpy as np

from aetdice.errors import InputError
from aetdice.objectives.aggregations import AlphaFair, Linear, Separable, SmoothMinimum
from aetdice.objectives.expressions import ExpressionAggregation, ExpressionUtility
from aetdice.objectives.fairness import Fair
from aetdice.objectives.objective import Objective
from aetdice.objectives.utilities import (
    AlphaFairUtility,
    Chain,
    CobbDouglas,
    Exponential,
    Identity,
    Scaled,
    Select,
    Stack,
    Threshold,
)

PARTS: dict[str, type[eqx.Module]] = {
    part.__name__: part
    for part in (
        Objective, Fair, Identity, AlphaFairUtility, Exponential, CobbDouglas, Threshold, Scaled, Select,
        Stack, Chain, Linear, AlphaFair, Separable, SmoothMinimum, ExpressionUtility, ExpressionAggregation,
    )
}  # fmt: skip
"""What a record may be made of; nothing else is ever built from a file."""


def objective_record(objective: Objective) -> dict[str, Any] | None:
    """The objective as JSON; None if it has a part of the user's own, which no file can hold."""
    try:
        return dict(_record(objective))
    except TypeError:
        return None


def _record(value: Any) -> Any:
    if isinstance(value, eqx.Module):
        if PARTS.get(type(value).__name__) is not type(value):
            raise TypeError(f"{type(value).__name__} has no record")
        return {"part": type(value).__name__} | {
            f.name: _record(getattr(value, f.name)) for f in fields(value)
        }
    if isinstance(value, Mapping):
        return {name: _record(entry) for name, entry in value.items()}
    if isinstance(value, tuple | list):
        return [_record(entry) for entry in value]
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        return np.asarray(value).tolist()
    return value


def objective_from(record: Mapping[str, Any]) -> Objective:
    """The objective of a record; `InputError` if it is not one."""
    try:
        objective = _read(record)
        if not isinstance(objective, Objective) or objective_record(objective) is None:
            raise ValueError("it describes none")
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InputError(f"the record of an objective cannot be read: {error}") from error
    return objective


def _read(value: Any) -> Any:
    if isinstance(value, Mapping) and "part" in value:
        if value["part"] not in PARTS:
            raise ValueError(f"there is no part {value['part']!r}; known: {', '.join(PARTS)}")
        return PARTS[value["part"]](**{name: _read(entry) for name, entry in value.items() if name != "part"})
    if isinstance(value, Mapping):
        return {name: np.asarray(entry, dtype=np.float64) for name, entry in value.items()}
    return tuple(_read(entry) for entry in value) if isinstance(value, list) else value
