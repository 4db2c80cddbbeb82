"""New episodes from parts of recorded ones, joined where they are in the same state.

What follows a state and an action depends neither on the accrued reward nor on the time, so a recorded
way through the states may be entered from any other that comes to the same state, whatever was accrued
by then. On augmented states alone nothing can be joined: there, every way that begins as one episode and
goes on as another ends with the return of the other.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from scipy.spatial import cKDTree

from aetdice.data.episodes import Episodes
from aetdice.data.successors import frames_before, number_rows

JOINS = (0.5, 1.0, 2.0, 4.0)
"""Joins per horizon; each new episode keeps one of them."""
NEIGHBOURS = 16
"""Continuous states that are near enough to be joined, at the most."""
NEAR = 1.0
"""States are joined that are as near as this many median steps apart."""


class Visits(NamedTuple):
    """Which steps leave from the state of every frame, or from one as near as a step is long."""

    rows: Int[np.ndarray, " k"]
    starts: Int[np.ndarray, " frames"]
    counts: Int[np.ndarray, " frames"]


def recombine(
    episodes: Episodes,
    count: int,
    horizon: int,
    rng: np.random.Generator,
    preference: Float[np.ndarray, " episodes"] | None = None,
    visits: Visits | None = None,
) -> Episodes:
    """So many new episodes. Each begins as a recorded one, and now and then goes on as another.

    Which it goes on as is drawn among the visits of the state, in proportion to the `preference` of their
    episodes, and looks at nothing else: without one, outcomes are as likely as recorded.
    """
    visits = visits_of(episodes) if visits is None else visits
    weight = np.ones(len(episodes)) if preference is None else preference
    mass = np.cumsum(np.repeat(weight, episodes.lengths)[visits.rows])
    frames = frames_before(episodes)
    last = np.zeros(episodes.steps, bool)
    last[episodes.starts + episodes.lengths - 1] = True
    ends = last & np.repeat(episodes.terminated, episodes.lengths)
    row = episodes.starts[rng.choice(len(episodes), count, p=weight / weight.sum())]
    rate = rng.choice(JOINS, count) / horizon
    taken = np.full((count, horizon), -1)
    going = np.ones(count, bool)
    for t in range(horizon):
        taken[going, t] = row[going]
        going &= ~ends[row]
        leave = going & ((rng.random(count) < rate) | last[row])
        joined, found = _draw(visits, mass, frames[row] + 1, rng)
        going &= ~(last[row] & ~found)
        row = np.where(leave & found, joined, row + 1)
    return _episodes(episodes, taken, frames, ends)


def visits_of(episodes: Episodes) -> Visits:
    """For every frame the steps by which its state was left; continuous states have near neighbours."""
    flat = episodes.observations.reshape(len(episodes.observations), -1)
    before = frames_before(episodes)
    numbers = number_rows(flat)
    if numbers is not None:
        order = np.argsort(numbers[before], kind="stable")
        first = np.searchsorted(numbers[before][order], numbers)
        after = np.searchsorted(numbers[before][order], numbers, side="right")
        return Visits(order, first, after - first)
    spread = flat.std(axis=0)
    scaled = flat / np.where(spread > 1e-6, spread, 1.0)
    radius = NEAR * np.median(np.linalg.norm(scaled[before + 1] - scaled[before], axis=1))
    _, near = cKDTree(scaled[before]).query(scaled, NEIGHBOURS, distance_upper_bound=radius, workers=-1)
    there = near < episodes.steps
    counts = there.sum(axis=1)
    return Visits(near[there], np.cumsum(counts) - counts, counts)


def _draw(
    visits: Visits,
    mass: Float[np.ndarray, " k"],
    frames: Int[np.ndarray, " n"],
    rng: np.random.Generator,
) -> tuple[Int[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
    """A visit of every frame's state, drawn by its mass; whether there is one."""
    first, after = visits.starts[frames], visits.starts[frames] + visits.counts[frames]
    low = np.where(first > 0, mass[first - 1], 0.0)
    high = np.where(after > 0, mass[after - 1], 0.0)
    drawn = np.searchsorted(mass, low + rng.random(len(frames)) * (high - low), side="right")
    found = (visits.counts[frames] > 0) & (high > low)
    return visits.rows[np.clip(drawn, first, np.maximum(after - 1, first)) % len(visits.rows)], found


def _episodes(
    episodes: Episodes,
    taken: Int[np.ndarray, "count horizon"],
    frames: Int[np.ndarray, " steps"],
    ends: Bool[np.ndarray, " steps"],
) -> Episodes:
    """The rows taken, laid end to end; the state before a step is that of the step itself."""
    lengths = np.sum(taken >= 0, axis=1)
    rows = taken[taken >= 0]
    last = rows[np.cumsum(lengths) - 1]
    places = np.arange(len(rows)) + np.repeat(np.arange(len(lengths)), lengths)
    observations: Shaped[np.ndarray, frames * o] = np.empty(
        (len(rows) + len(lengths), *episodes.observations.shape[1:]), episodes.observations.dtype
    )
    observations[places] = episodes.observations[frames[rows]]
    observations[np.cumsum(lengths + 1) - 1] = episodes.observations[frames[last] + 1]
    terminated = ends[last]
    return Episodes(
        observations=observations,
        actions=episodes.actions[rows],
        rewards=episodes.rewards[rows],
        lengths=lengths,
        terminated=terminated,
        truncated=~terminated,
        objectives=episodes.objectives,
    )
