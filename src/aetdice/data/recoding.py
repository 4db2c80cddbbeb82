"""Episodes in the coding of others: the same words, the same numbers."""

from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Int, Shaped

from aetdice.data.coding import Coding, Value, listed
from aetdice.data.episodes import Episodes
from aetdice.errors import InputError


def recoded(episodes: Episodes, coding: Coding, owner: str = "the store") -> Episodes:
    """The episodes with the numbers that `coding`, its owner's, gives to their words; `InputError` for a
    new word.
    """
    own = episodes.coding
    if own is None or own == coding:
        return replace(episodes, coding=coding)
    for what, here, there in (
        ("observations", [c.name for c in own.observations], [c.name for c in coding.observations]),
        ("actions", list(own.action_names), list(coding.action_names)),
    ):
        if here != there:
            raise InputError(
                f"the {what} are {', '.join(here)}, but those of {owner} {', '.join(there)}: name the "
                "columns alike, in the same order"
            )
    return replace(
        episodes,
        observations=_observations(episodes.observations, own, coding, owner),
        actions=_actions(episodes.actions, own, coding, owner),
        coding=coding,
    )


def _observations(
    frames: Shaped[np.ndarray, "frames o"], own: Coding, coding: Coding, owner: str
) -> Shaped[np.ndarray, "frames p"]:
    """Column by column: words as the other coding has them, numbers as they are."""
    parts, start = [], 0
    for here, there in zip(own.observations, coding.observations, strict=True):
        width = len(here.values) if here.values is not None and own.indicators else 1
        part = frames[:, start : start + width]
        start += width
        if (here.values is None) != (there.values is None):
            raise InputError(f"observation {here.name!r} is a number in one of them, a category in the other")
        if here.values is None or there.values is None:
            parts.append(part)
            continue
        codes = part.argmax(axis=1) if own.indicators else part[:, 0].astype(int)
        places = _places(here.values, there.values, codes, f"observation {here.name!r}", owner)[codes]
        parts.append(
            places[:, None] == np.arange(len(there.values)) if coding.indicators else places[:, None]
        )
    return np.concatenate(parts, axis=1)


def _actions(actions: Shaped[np.ndarray, "steps *a"], own: Coding, coding: Coding, owner: str) -> Any:
    """Classes by what they stand for; whole numbers stand for themselves."""
    if own.actions == coding.actions:
        return actions
    if not np.issubdtype(actions.dtype, np.integer) or actions.ndim != 1:
        raise InputError(f"the actions are numbers, but those of {owner} classes")
    count = int(actions.max()) + 1
    meanings = own.actions or tuple((number,) for number in range(count))
    if coding.actions is not None:
        return _places(meanings, coding.actions, actions, "an action", owner)[actions]
    numbers = [entry[0] for entry in meanings]
    if len(own.action_names) != 1 or not all(isinstance(n, int) and n >= 0 for n in numbers):
        raise InputError(f"the actions are {listed(numbers)}, but those of {owner} 0, 1, …")
    return np.array(numbers)[actions]


def _places(
    words: tuple[Any, ...], known: tuple[Any, ...], used: Int[np.ndarray, " rows"], what: str, owner: str
) -> Int[np.ndarray, " words"]:
    """The number of every word among those known."""
    places = np.array([known.index(word) if word in known else -1 for word in words])
    if lost := [words[index] for index in np.unique(used) if places[index] < 0]:
        shown: list[Value] = [
            entry[0] if isinstance(entry, tuple) and len(entry) == 1 else entry for entry in known
        ]
        new = lost[0][0] if isinstance(lost[0], tuple) and len(lost[0]) == 1 else lost[0]
        raise InputError(f"{what} is {new!r}, which {owner} never had; known: {listed(shown)}")
    return places
