"""What the numbers of a dataset stand for: names of columns, categories, and what each action is called.

A learner sees numbers. The coding turns observations with words into numbers and actions into words
again; it is kept with the dataset and in the policy's file, as JSON.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from aetdice_runner.checks import shown
from aetdice_runner.errors import InputError

if TYPE_CHECKING:
    from jaxtyping import Shaped

Value = str | int | float | bool
"""A category, as JSON has it."""
SHOWN = 12


@dataclass(frozen=True)
class ObservationColumn:
    """One column of the observations: a number, or one of several values."""

    name: str
    values: tuple[Value, ...] | None = None


@dataclass(frozen=True)
class Coding:
    """Observations into numbers, and discrete actions into what they are called."""

    observations: tuple[ObservationColumn, ...]
    indicators: bool
    """Whether a category is an indicator per value (beside numbers) instead of one whole number."""
    action_names: tuple[str, ...]
    actions: tuple[tuple[Value, ...], ...] | None = None
    """What each discrete action stands for, column by column; None where they are numbers already."""

    @property
    def plain(self) -> bool:
        """Whether observations are numbers throughout."""
        return all(column.values is None for column in self.observations)

    def encode(self, observations: Any) -> Any:
        """Several observations, each a sequence or a mapping by name, as rows of numbers."""
        if not isinstance(observations, Iterable) or isinstance(observations, str | bytes | Mapping):
            raise InputError(f"several observations are a sequence of them, not {shown(observations)}")
        if self.plain and not any(isinstance(row, Mapping) for row in observations):
            return observations
        return np.array([self._encode(row) for row in observations], dtype=np.float64)

    def _encode(self, row: Any) -> list[float]:
        names = [column.name for column in self.observations]
        if isinstance(row, Mapping):
            if lost := [name for name in names if name not in row]:
                raise InputError(f"the observation has no {lost[0]!r}; it needs {', '.join(names)}")
            entries = [row[name] for name in names]
        else:
            entries = list(row) if isinstance(row, Iterable) and not isinstance(row, str | bytes) else [row]
        if len(entries) != len(names):
            raise InputError(
                f"an observation has {len(names)} entries ({', '.join(names)}), not {len(entries)}"
            )
        pairs = zip(self.observations, entries, strict=True)
        return [number for column, entry in pairs for number in self._numbers(column, entry)]

    def _numbers(self, column: ObservationColumn, entry: Any) -> list[float]:
        if column.values is None:
            if not isinstance(entry, numbers.Real | np.generic) or isinstance(entry, str | bytes):
                raise InputError(f"observation {column.name!r} is a number, not {shown(entry)}")
            try:
                return [float(entry)]
            except OverflowError as error:
                raise InputError(f"observation {column.name!r} is too large for a number") from error
        plain = isinstance(entry, str | numbers.Real | np.generic)
        found = [plain and bool(value == entry) for value in column.values]
        if not any(found):
            raise InputError(
                f"observation {column.name!r} is {shown(entry)}, which the data never had; known: "
                f"{listed(column.values)}"
            )
        return [float(each) for each in found] if self.indicators else [float(found.index(True))]

    def decode(self, actions: Shaped[np.ndarray, "n *a"]) -> Shaped[np.ndarray, "n *a"]:
        """What discrete actions are called: a value each, or a tuple where actions have several columns."""
        if self.actions is None:
            return actions
        meanings = np.empty(len(self.actions), dtype=object)
        meanings[:] = [entry[0] if len(entry) == 1 else entry for entry in self.actions]
        return meanings[actions]

    def record(self) -> dict[str, Any]:
        """The coding as JSON; `coding_from` reads it."""
        return {
            "observations": [
                {"name": column.name, "values": None if column.values is None else list(column.values)}
                for column in self.observations
            ],
            "indicators": self.indicators,
            "action_names": list(self.action_names),
            "actions": None if self.actions is None else [list(entry) for entry in self.actions],
        }


def coding_from(record: Mapping[str, Any]) -> Coding:
    """The coding of a record."""
    try:
        return Coding(
            tuple(
                ObservationColumn(_text(entry["name"]), _values(entry["values"]))
                for entry in record["observations"]
            ),
            bool(record["indicators"]),
            tuple(_text(name) for name in record["action_names"]),
            None if record["actions"] is None else tuple(_values(entry) or () for entry in record["actions"]),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"the record of a coding is not one: {error!r}") from error


def listed(values: Sequence[Any]) -> str:
    """The first values, and how many more there are."""
    more = f", … ({len(values)} in all)" if len(values) > SHOWN else ""
    return ", ".join(str(value) for value in values[:SHOWN]) + more


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no name")
    return value


def _values(values: Any) -> tuple[Value, ...] | None:
    if values is None:
        return None
    if not isinstance(values, list) or not all(isinstance(v, str | int | float | bool) for v in values):
        raise TypeError("values are a list of words and numbers")
    return tuple(values)
