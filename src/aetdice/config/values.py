"""The values of settings: read from text, put into their types, held to their ranges."""

import sys
import types
from collections.abc import Callable
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from aetdice.errors import InputError

Rule = tuple[Callable[[Any], bool], str]
AT_LEAST_ONE: Rule = (lambda value: value >= 1, "must be at least 1")
NOT_NEGATIVE: Rule = (lambda value: value >= 0, "must be at least 0")
POSITIVE: Rule = (lambda value: 0 < value < np.inf, "must be positive")
SHARE: Rule = (lambda value: 0 <= value <= 1, "is a share between 0 and 1")
POSITIVE_SHARE: Rule = (lambda value: 0 < value <= 1, "is a share above 0 and at most 1")
BELOW_ONE: Rule = (lambda value: 0 <= value < 1, "must be at least 0 and below 1")


def settle(config: Any, group: str) -> None:
    """Every setting in its own type: a list becomes a tuple, a whole number a float where one is meant."""
    for name, kind in get_type_hints(type(config)).items():
        object.__setattr__(config, name, fitted(f"{group}.{name}", getattr(config, name), kind))


def require(config: Any, group: str, names: tuple[str, ...], rule: Rule) -> None:
    """`InputError` if one of these settings breaks the rule; None keeps every rule."""
    holds, words = rule
    for name in names:
        value = getattr(config, name)
        if value is not None and not holds(value):
            raise InputError(f"{group}.{name} {words}, not {value}")


def parsed(text: str, kind: Any) -> Any:
    """Text as the type of a setting; what does not fit stays text, for `fitted` to refuse."""
    readers: dict[Any, Callable[[str], Any]] = {
        int: int,
        float: float,
        bool: lambda word: {"true": True, "false": False}[word.lower()],
        types.NoneType: lambda word: None if word.lower() == "none" else int("no"),
    }
    for option in _options(kind):
        if get_origin(option) is tuple:
            parts = text.strip("()[]").replace(",", " ").split()
            return tuple(parsed(part, get_args(option)[0]) for part in parts)
        if option in readers:
            try:
                return readers[option](text)
            except (KeyError, ValueError):
                continue
    return text


def fitted(name: str, value: Any, kind: Any) -> Any:
    """The value in the type of its setting; `InputError` names what does not fit."""
    for option in _options(kind):
        if get_origin(option) is Literal and value in get_args(option):
            return value
        if get_origin(option) is tuple and isinstance(value, list | tuple):
            return tuple(fitted(name, entry, get_args(option)[0]) for entry in value)
        if option is types.NoneType and value is None:
            return value
        if option is bool and isinstance(value, bool):
            return value
        if option is int and isinstance(value, int | np.integer) and not isinstance(value, bool):
            return int(value)
        if option is float and isinstance(value, int | float | np.integer | np.floating) and _is_float(value):
            return float(value)
    words = " or ".join(_words(option) for option in _options(kind))
    raise InputError(f"{name} must be {words}, not {value!r}")


def _is_float(value: Any) -> bool:
    """Whether a number is neither true or false nor a whole one beyond all floats."""
    return not isinstance(value, bool) and (not isinstance(value, int) or abs(value) <= sys.float_info.max)


def _options(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def _words(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return ", ".join(get_args(kind))
    if get_origin(kind) is tuple:
        return "whole numbers"
    return {int: "a whole number", float: "a number", bool: "true or false", types.NoneType: "none"}[kind]
