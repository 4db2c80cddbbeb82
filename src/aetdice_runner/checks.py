"""What no policy should act on is refused in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from aetdice_runner.errors import InputError

if TYPE_CHECKING:
    from jaxtyping import Bool, Shaped
    from numpy.typing import ArrayLike

LARGEST = float(np.finfo(np.float32).max)
"""The networks' precision: anything beyond is infinite to them."""


class Interface(NamedTuple):
    """What a policy is told: observations, rewards of so many objectives, until the horizon."""

    horizon: int
    size: int
    """Numbers per observation."""
    sizes: tuple[int, ...] | None
    """Values per entry of a discrete observation; None for continuous ones."""
    objectives: int


def numbers(values: ArrayLike, what: str) -> Shaped[np.ndarray, "..."]:
    """The values as one array of numbers."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} must be numbers: {error}") from error
    if array.dtype.kind not in "biuf":
        raise InputError(f"{what} must be numbers, not {shown(values)}")
    return array


def shown(value: Any, limit: int = 200) -> str:
    """How a value stands in a sentence: not at any length."""
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}…"


def is_finite(values: Shaped[np.ndarray, "*s"]) -> Bool[np.ndarray, "*s"]:
    """Finite in the precision of the networks."""
    return np.abs(values) <= LARGEST


def check_observations(
    interface: Interface, observations: ArrayLike, count: int
) -> Shaped[np.ndarray, "n o"]:
    """The observations as the network takes them: float32 or int32."""
    found = numbers(observations, "observations")
    if found.shape[:1] != (count,):
        raise InputError(f"{count} episodes need {count} observations, not an array of shape {found.shape}")
    if found.ndim > 2:
        raise InputError(f"an observation is a list of {interface.size} numbers, not lists of lists")
    rows = found.reshape(count, -1)
    if rows.shape[1] != interface.size:
        raise InputError(f"an observation has {interface.size} entries, not {rows.shape[1]}")
    fine = is_finite(rows)
    if not fine.all():
        row, column = np.argwhere(~fine)[0]
        raise InputError(f"an observation must be finite, but entry {column} is {rows[row, column]}")
    if interface.sizes is None:
        return rows.astype(np.float32)
    wrong = (rows < 0) | (rows >= np.array(interface.sizes)) | (rows != np.round(rows))
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise InputError(
            f"entry {column} of an observation is a whole number from 0 to {interface.sizes[column] - 1}, "
            f"not {rows[row, column]}"
        )
    return rows.astype(np.int32)
