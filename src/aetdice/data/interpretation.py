"""From a recording to episodes: how they end, and what the last row means."""

from dataclasses import replace
from typing import Any

import numpy as np

from aetdice.data.coding import Coding
from aetdice.data.ends import Ending, settle_ends
from aetdice.data.episodes import Episodes
from aetdice.data.kinds import Layout, actions_of, observations_of
from aetdice.data.readers.base import Recording
from aetdice.errors import InputError


def interpret(recording: Recording, ends: str | None = None, horizon: int | None = None) -> Episodes:
    """The episodes of a recording, with the coding and what was decided in words."""
    _check_horizon(horizon)
    longest, said = int(np.argmax(recording.lengths)), horizon
    horizon = int(recording.lengths[longest]) if horizon is None else horizon
    if recording.lengths[longest] > horizon:
        raise InputError(
            f"{recording.where(longest, 0)}: the episode has {recording.lengths[longest]} steps, more than "
            f"the horizon of {horizon}"
        )
    _check_rewards(recording)
    ending = settle_ends(recording.lengths, recording.terminated, horizon, ends)
    layout = _layout(recording, ending)
    observed, indicators, observations, seen = observations_of(recording, layout)
    actions, meanings, acted = actions_of(recording, layout)
    coding = Coding(observed, indicators, tuple(each.name for each in recording.actions), meanings)
    rewards = recording.rewards if layout.steps is None else recording.rewards[layout.steps]
    count = f"{len(layout.lengths):,} episodes of {layout.lengths.min()} to {layout.lengths.max()} steps"
    return Episodes(
        observations=observations,
        actions=actions,
        rewards=rewards,
        lengths=layout.lengths,
        terminated=recording.terminated[layout.episodes],
        truncated=recording.truncated[layout.episodes],
        objectives=recording.objectives,
        origin={"columns": recording.remembered},
        coding=coding,
        horizon=said,
        ends=ending.ends,
        notes=(
            *recording.notes,
            f"{count}, {len(rewards):,} steps",
            seen,
            acted,
            ending.words,
            *layout.words,
        ),
    )


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


def _check_rewards(recording: Recording) -> None:
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


def _layout(recording: Recording, ending: Ending) -> Layout:
    """The rule for the observation after the last step, where a table has none.

    It is not used where the episode is over (terminated, at the horizon, by design): the last one is
    repeated. Where the recording was cut the last step is dropped, and its observation ends the episode.
    """
    lengths, last = recording.lengths, recording.last
    cut = ~last & ending.early if ending.ends == "recording" else np.zeros(len(lengths), bool)
    kept = ~(cut & (lengths == 1))
    if not kept.any():
        raise InputError(
            f"{recording.source}: every episode is one step of a cut recording; nothing follows it"
        )
    if last.all():
        return Layout(kept, lengths, None, None, ())
    words = []
    if (unseen := int(np.sum(~last & ~cut))) > 0:
        words.append(
            f"last observation: unknown in {unseen:,} episodes that are over, where it is not used "
            "(the one before stands in)"
        )
    steps = None
    if cut.any():
        gone = int(np.sum(~kept))
        more = f"; {gone:,} episodes of one step are left out" if gone else ""
        words.append(
            f"last observation: unknown in {int(cut.sum()):,} cut recordings, whose last step is "
            f"dropped{more}"
        )
        steps = np.ones(lengths.sum(), bool)
        steps[np.cumsum(lengths)[cut] - 1] = False
    rows = lengths + last
    starts = np.cumsum(rows) - rows
    new = (lengths - cut)[kept]
    within = np.arange(new.sum() + len(new)) - np.repeat(np.cumsum(new + 1) - (new + 1), new + 1)
    frames = np.repeat(starts[kept], new + 1) + np.minimum(within, np.repeat(rows[kept] - 1, new + 1))
    return Layout(kept, new, frames, steps, tuple(words))
