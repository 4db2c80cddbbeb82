"""Policies whose J is known, and the logs to estimate them from: the cases of `estimation.py`."""

from collections.abc import Callable, Iterable, Iterator

from estimation_cases.case import KEPT, Case
from estimation_cases.learned import body_cases, maze_cases, taxi_cases
from estimation_cases.tables import GYM, SEEDS, dispatch_cases, gym_cases, momdp_cases, narrow_cases

FAMILIES: dict[str, tuple[Callable[[Iterable[int]], Iterator[Case]], int]] = {
    "momdp": (momdp_cases, 12),
    "narrow": (narrow_cases, 12),
    "taxi": (taxi_cases, 6),
    "mo-gym": (gym_cases, SEEDS * len(GYM)),
    "dispatch": (dispatch_cases, 6),
    "maze": (maze_cases, 6),
    "body": (body_cases, 2),
}
"""By name: what makes the cases of problems by their numbers, and how many there usually are."""

__all__ = ["FAMILIES", "KEPT", "Case"]
