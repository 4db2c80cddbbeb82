"""What may vary in a sweep: an algorithm's own values, learning rates, and settings by dotted name."""

from collections.abc import Mapping
from typing import Any, NamedTuple, get_args, get_origin

from aetdice.algorithms import ALGORITHMS
from aetdice.config import TrainingConfig, is_among, kind_of
from aetdice.config.values import fitted
from aetdice.errors import InputError
from aetdice.learning.table import LEARNING_RATE, TOGETHER


class Range(NamedTuple):
    """Numbers to search in, whole ones where both ends are."""

    low: float | int
    high: float | int
    log: bool


def is_value(name: str, algorithm: str) -> bool:
    """Whether an algorithm reads a value or setting of this name; `InputError` if nothing is called so."""
    learner = ALGORITHMS[algorithm](1, TrainingConfig())
    if name in TOGETHER:
        return name == LEARNING_RATE or name in learner.sweeps
    if "." not in name:
        known = ", ".join(TOGETHER)
        raise InputError(
            f"nothing called {name!r} varies in a sweep; {known}, and settings by dotted name, do"
        )
    kind_of(name)
    return not is_among(name, learner.ignores)


def values_of(name: str, given: Any) -> list[Any] | Range:
    """One value or several, each of its type, or a range."""
    kind: Any = float if name in TOGETHER else kind_of(name)
    if isinstance(given, Mapping):
        return _range(name, given, kind)
    several = isinstance(given, list | tuple)
    if several and _is_tuple(kind):
        several = any(isinstance(each, list | tuple) for each in given)
    values = [fitted(name, each, kind) for each in given] if several else [fitted(name, given, kind)]
    if not values or any(value in values[:i] for i, value in enumerate(values)):
        raise InputError(f"{name} needs at least one value, and each once; not {given!r}")
    return values


def _range(name: str, given: Mapping[str, Any], kind: Any) -> Range:
    if not {"low", "high"} <= set(given) <= {"low", "high", "log"}:
        raise InputError(f"{name} is a list, or {{ low = …, high = …, log = true }}; not {dict(given)!r}")
    options = get_args(kind) or (kind,)
    if float not in options and int not in options:
        raise InputError(f"{name} has no range: give a list of choices")
    low, high = (fitted(name, given[end], float if float in options else int) for end in ("low", "high"))
    log = fitted(f"{name}.log", given.get("log", False), bool)
    if not low < high or (log and low <= 0):
        raise InputError(
            f"{name} needs low < high{', and both positive' if log else ''}; not {dict(given)!r}"
        )
    return Range(low, high, log)


def _is_tuple(kind: Any) -> bool:
    return any(get_origin(option) is tuple for option in (kind, *get_args(kind)))
