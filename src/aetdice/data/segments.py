"""D8 of docs/paper.md: n-step transitions. What n steps in a row lead to is one step of a coarser problem.

With n = 1 these are the steps themselves, with n = H whole episodes. What lies inside a segment cancels
from the dual, so no value of ν is needed there; nor can it be stitched to anything else.
"""

import dataclasses

import numpy as np
from jaxtyping import Int

from aetdice.data.augmentation import Transitions, augment, censoring_weights
from aetdice.data.episodes import Episodes
from aetdice.errors import InputError
from aetdice.objectives import Utility

CUT = -1
"""The segment of a step whose recording was cut before its segment was complete."""


def segment_episodes(
    episodes: Episodes, n_step: int, horizon: int
) -> tuple[Episodes, Int[np.ndarray, " steps"]]:
    """Episodes whose steps are segments, and the segment of every recorded step.

    An episode's last segment may be shorter, unless the recording was cut there: what the rest would
    have brought is not known, so that segment is left out.
    """
    lengths = episodes.lengths
    censored = episodes.truncated & ~episodes.terminated & (lengths < horizon)
    begun = -(-lengths // n_step)
    complete = np.where(censored, lengths // n_step, begun)
    kept = complete > 0
    if not kept.any():
        raise InputError(f"no recording has {n_step} steps in a row; use a smaller dual.n_step")
    within = np.arange(episodes.steps) - np.repeat(episodes.starts, lengths)
    starts = np.flatnonzero(within % n_step == 0)
    episode = np.repeat(np.arange(len(lengths)), begun)
    whole = within[starts] // n_step < complete[episode]
    frames = np.repeat(episodes.starts + np.arange(len(lengths)), complete + kept)
    place = np.arange(len(frames)) - np.repeat(np.cumsum(complete + kept) - complete - kept, complete + kept)
    offsets = np.minimum(n_step * place, np.repeat(lengths, complete + kept))
    coarse = Episodes(
        observations=episodes.observations[frames + offsets],
        actions=episodes.actions[starts[whole]],
        rewards=np.add.reduceat(episodes.rewards, starts, axis=0)[whole],
        lengths=complete[kept],
        terminated=episodes.terminated[kept],
        truncated=episodes.truncated[kept],
        objectives=episodes.objectives,
    )
    number = np.where(whole, np.cumsum(whole) - 1, CUT)
    sizes = np.diff(np.append(starts, episodes.steps))
    return coarse, np.repeat(number, sizes)


def augment_segments(
    episodes: Episodes, utility: Utility, n_step: int, horizon: int
) -> tuple[Transitions, Int[np.ndarray, " steps"]]:
    """Segments on augmented states, in a problem of ⌈H/n⌉ steps, and the segment of every step.

    A segment is recorded whole as often as its last step is, so that step's weight is its own.
    """
    coarse, segment = segment_episodes(episodes, n_step, horizon)
    transitions = augment(coarse, utility, -(-horizon // n_step))
    last = np.zeros(coarse.steps, int)
    time = np.arange(episodes.steps) - np.repeat(episodes.starts, episodes.lengths)
    np.maximum.at(last, segment[segment != CUT], time[segment != CUT])
    return dataclasses.replace(transitions, weights=censoring_weights(episodes, horizon)[last]), segment
