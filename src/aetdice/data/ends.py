"""How truncated episodes ended: by design (the end of a shift), or because the recording stopped."""

from typing import Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import Bool, Int

from aetdice.errors import InputError

Ends = Literal["shift", "recording"]
HEAVIEST = 2.0
"""The largest weight of a step, in units of 1/N, for which cut recordings are believed without a word."""


class Ending(NamedTuple):
    """What truncated ends before the horizon are taken for, and why."""

    ends: Ends
    early: Bool[np.ndarray, " n"]
    """Episodes that are truncated before the horizon and not terminated."""
    words: str


def settle_ends(
    lengths: Int[np.ndarray, " n"],
    terminated: Bool[np.ndarray, " n"],
    horizon: int,
    given: str | None = None,
) -> Ending:
    """As given; else by what cut recordings would mean.

    A recording that is cut now and then leaves most episodes whole, and those that are cut are made
    up for by weights near 1/N. Where that would take more than 2/N (most episodes stop early, so a few
    long ones must stand for all) the lengths are taken for the episodes' own: shifts.
    """
    if given is not None and given not in get_args(Ends):
        raise InputError(f"ends are shift or recording, not {given!r}")
    early = ~terminated & (lengths < horizon)
    count = int(early.sum())
    at_horizon = int(np.sum(~terminated & (lengths == horizon)))
    counted = f"{int(terminated.sum()):,} terminated, {at_horizon:,} truncated at the horizon of {horizon}"
    if count == 0:
        return Ending(given or "recording", early, f"ends: {counted}; none is truncated before")  # type: ignore[arg-type]
    counted += f", {count:,} truncated before it"
    weight = heaviest(lengths, early, horizon)
    if given is None:
        given = "recording" if weight <= HEAVIEST else "shift"
        reason = (
            f"as cut recordings they would make steps count up to {weight:.3g}-fold; if that is what they "
            "are, say ends=recording"
            if given == "shift"
            else f"steps count up to {weight:.3g}-fold for them; if the episodes were over, say ends=shift"
        )
        how = f"taken for {'ends by design' if given == 'shift' else 'cut recordings'} ({given}): {reason}"
    else:
        how = f"{'ends by design' if given == 'shift' else 'cut recordings'}, as said ({given})"
        how += "" if given == "shift" else f"; steps count up to {weight:.3g}-fold for them"
    return Ending(given, early, f"ends: {counted}, {how}")  # type: ignore[arg-type]


def heaviest(lengths: Int[np.ndarray, " n"], early: Bool[np.ndarray, " n"], horizon: int) -> float:
    """The largest 1/Q_t of `censoring_weights` over the times that are recorded."""
    cut = np.bincount(lengths[early], minlength=horizon + 1)[:horizon]
    running = len(lengths) - np.cumsum(np.bincount(lengths, minlength=horizon + 1))[:horizon]
    kept = np.cumprod(1 - cut / np.maximum(running + cut, 1))
    return float(1 / kept[running > 0].min()) if (running > 0).any() else 1.0
