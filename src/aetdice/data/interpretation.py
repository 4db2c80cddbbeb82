"""From a recording to episodes: how they end, and what the last row means."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from aetdice.data.coding import Coding
from aetdice.data.ends import Ending, settle_ends
from aetdice.data.episodes import Episodes
from aetdice.data.kinds import Layout, actions_of, observations_of
from aetdice.data.looks import Acted, Observed
from aetdice.data.readers.base import Recording
from aetdice.errors import InputError


class Outline(NamedTuple):
    """Of every episode how long it is and how it ends."""

    lengths: Int[np.ndarray, " n"]
    terminated: Bool[np.ndarray, " n"]
    truncated: Bool[np.ndarray, " n"]
    last: Bool[np.ndarray, " n"]
    """Whether the observation after the last step is known."""
    flagless: int
    """How many end without a flag."""


class Ruling(NamedTuple):
    """What the ends of episodes mean, and which steps are left out because nothing follows them."""

    horizon: int
    ending: Ending
    kept: Bool[np.ndarray, " n"]
    """Which episodes have a step left."""
    cut: Bool[np.ndarray, " n"]
    """Which lose their last step."""
    words: tuple[str, ...]


def interpret(recording: Recording, ends: str | None = None, horizon: int | None = None) -> Episodes:
    """The episodes of a recording, with the coding and what was decided in words."""
    check_rewards(recording)
    outline = outline_of(recording)
    ruling = rule(outline, recording.source, recording.where, ends, horizon)
    layout = layout_of(outline, ruling)
    observed, observations = observations_of(recording, layout)
    acted, actions = actions_of(recording, layout)
    return Episodes(
        observations=observations,
        actions=actions,
        rewards=recording.rewards if layout.steps is None else recording.rewards[layout.steps],
        lengths=layout.lengths,
        terminated=recording.terminated[ruling.kept],
        truncated=recording.truncated[ruling.kept],
        objectives=recording.objectives,
        origin={"columns": recording.remembered},
        coding=coding_of(recording, observed, acted),
        horizon=horizon,
        ends=ruling.ending.ends,
        notes=(*recording.notes, *notes_of(outline, layout.lengths, observed, acted, ruling)),
    )


def outline_of(recording: Recording) -> Outline:
    return Outline(
        recording.lengths, recording.terminated, recording.truncated, recording.last, recording.flagless
    )


def joined_outline(parts: Sequence[Outline]) -> Outline:
    return Outline(
        np.concatenate([part.lengths for part in parts]),
        np.concatenate([part.terminated for part in parts]),
        np.concatenate([part.truncated for part in parts]),
        np.concatenate([part.last for part in parts]),
        sum(part.flagless for part in parts),
    )


def coding_of(recording: Recording, observed: Observed, acted: Acted) -> Coding:
    """What the numbers of the arrays stand for."""
    names = tuple(each.name for each in recording.actions)
    return Coding(observed.columns, observed.indicators, names, acted.meanings)


def notes_of(
    outline: Outline, lengths: Int[np.ndarray, " kept"], observed: Observed, acted: Acted, ruling: Ruling
) -> tuple[str, ...]:
    """What was decided, in words."""
    flagless = [f"{outline.flagless:,} episodes end without a flag: truncated"] if outline.flagless else []
    count = f"{len(lengths):,} episodes of {lengths.min()} to {lengths.max()} steps, {lengths.sum():,} steps"
    return (*flagless, count, observed.words, acted.words, ruling.ending.words, *ruling.words)


def rule(
    outline: Outline,
    source: str,
    where: Callable[[int, int], str],
    ends: str | None = None,
    horizon: int | None = None,
) -> Ruling:
    """What becomes of the ends of all episodes.

    Where a table has no observation after the last step, it is not used if the episode is over (terminated,
    at the horizon, by design): the last one is repeated. Where the recording was cut the last step is
    dropped, and its observation ends the episode.
    """
    _check_horizon(horizon)
    lengths, last = outline.lengths, outline.last
    longest = int(np.argmax(lengths))
    horizon = int(lengths[longest]) if horizon is None else horizon
    if lengths[longest] > horizon:
        raise InputError(
            f"{where(longest, 0)}: the episode has {lengths[longest]} steps, more than the horizon of "
            f"{horizon}"
        )
    ending = settle_ends(lengths, outline.terminated, horizon, ends)
    cut = ~last & ending.early if ending.ends == "recording" else np.zeros(len(lengths), bool)
    kept = ~(cut & (lengths == 1))
    if not kept.any():
        raise InputError(f"{source}: every episode is one step of a cut recording; nothing follows it")
    words = []
    if (unseen := int(np.sum(~last & ~cut))) > 0:
        words.append(
            f"last observation: unknown in {unseen:,} episodes that are over, where it is not used "
            "(the one before stands in)"
        )
    if cut.any():
        gone = int(np.sum(~kept))
        more = f"; {gone:,} episodes of one step are left out" if gone else ""
        words.append(
            f"last observation: unknown in {int(cut.sum()):,} cut recordings, whose last step is "
            f"dropped{more}"
        )
    return Ruling(horizon, ending, kept, cut, tuple(words))


def layout_of(outline: Outline, ruling: Ruling) -> Layout:
    """Which rows of these episodes become which observations and steps."""
    lengths, last, kept, cut = outline.lengths, outline.last, ruling.kept, ruling.cut
    if last.all():
        return Layout(lengths, None, None)
    steps = None
    if cut.any():
        steps = np.ones(lengths.sum(), bool)
        steps[np.cumsum(lengths)[cut] - 1] = False
    rows = lengths + last
    starts = np.cumsum(rows) - rows
    new = (lengths - cut)[kept]
    within = np.arange(new.sum() + len(new)) - np.repeat(np.cumsum(new + 1) - (new + 1), new + 1)
    frames = np.repeat(starts[kept], new + 1) + np.minimum(within, np.repeat(rows[kept] - 1, new + 1))
    return Layout(new, frames, steps)


def resettled(episodes: Episodes, ends: str | None = None, horizon: int | None = None) -> Episodes:
    """Episodes that a file keeps with their coding; how they end may be said anew."""
    _check_horizon(horizon)
    longest, horizon = int(episodes.lengths.max()), horizon or episodes.horizon
    if horizon is not None and longest > horizon:
        raise InputError(f"an episode has {longest} steps, more than the horizon of {horizon}")
    ending = settle_ends(episodes.lengths, episodes.terminated, horizon or longest, ends or episodes.ends)
    count = (
        f"{len(episodes):,} episodes of {episodes.lengths.min()} to {longest} steps, {episodes.steps:,} steps"
    )
    return replace(episodes, ends=ending.ends, horizon=horizon, notes=(count, ending.words))


def _check_horizon(horizon: Any) -> None:
    if horizon is not None and (not isinstance(horizon, int | np.integer) or horizon < 1):
        raise InputError(f"the horizon is a number of steps, 1 or more, not {horizon!r}")


def check_rewards(recording: Recording) -> None:
    """Rewards are finite in the precision of the networks, too."""
    rewards, largest = recording.rewards, float(np.finfo(np.float32).max)
    if -largest <= rewards.min() and rewards.max() <= largest:
        return
    step, index = np.argwhere(~(np.abs(rewards) <= largest))[0]
    starts = np.cumsum(recording.lengths) - recording.lengths
    episode = int(np.searchsorted(starts, step, side="right")) - 1
    raise InputError(
        f"{recording.where(episode, int(step - starts[episode]))}: reward {recording.objectives[index]!r} is "
        f"{rewards[step, index]:g}, more than {largest:.3g}, beyond which networks know no numbers"
    )
