"""Members of one shape as few populations as fit: a product is cut along its axes, in order."""

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

Axes = Mapping[str, tuple[Any, ...]]
"""A product of members: every combination of the values on its axes. Those first are cut first."""


def members_in(axes: Axes) -> int:
    """How many combinations there are."""
    return math.prod(map(len, axes.values()))


def pack(axes: Axes, fits: Callable[[Axes], bool]) -> list[Axes]:
    """The product in parts that fit, each of them a product; what fits at no size stays a single member.

    One axis is cut after the other, into as few parts of nearly one length as will do. `fits` holds for
    every part of what it holds for.
    """
    if fits(axes):
        return [axes]
    name = next((name for name, values in axes.items() if len(values) > 1), None)
    if name is None:
        return [axes]
    for count in range(2, len(axes[name]) + 1):
        parts: list[Axes] = [{**axes, name: part} for part in even_parts(axes[name], count)]
        if all(map(fits, parts)):
            return parts
    return [small for value in axes[name] for small in pack({**axes, name: (value,)}, fits)]


def even_parts(values: tuple[Any, ...], count: int) -> list[tuple[Any, ...]]:
    """In order, none longer than another by more than one."""
    edges = [len(values) * i // count for i in range(count + 1)]
    return [values[low:high] for low, high in itertools.pairwise(edges)]
