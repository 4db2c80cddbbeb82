"""New episodes from parts of recorded ones, joined where they are in the same state.

What follows a state and an action depends neither on the accrued reward nor on the time, so a recorded
way through the states may be entered from any other that comes to the same state, whatever was accrued
by then. On augmented states alone nothing can be joined: there, every way that begins as one episode and
goes on as another ends with the return of the other.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.spatial import cKDTree

from aetdice.data.episodes import Episodes
from aetdice.data.successors import frames_before, number_rows

JOINS = (0.5, 1.0, 2.0, 4.0)
"""Joins per horizon; each new way keeps one of them."""
NEIGHBOURS = 16
"""Continuous states that are near enough to be joined, at the most."""
NEAR = 0.5
"""Continuous states are joined that are nearer than so many median steps."""
NOWHERE = -1

Ways = Int[np.ndarray, "ways horizon"]
"""Series of recorded steps, by their rows; `NOWHERE` after the end."""


class Visits(NamedTuple):
    """Which recorded steps leave from the state of every frame, or from one very near."""

    rows: Int[np.ndarray, " k"]
    starts: Int[np.ndarray, " frames"]
    counts: Int[np.ndarray, " frames"]


class Recombination:
    """Recorded steps, and where they meet."""

    def __init__(self, episodes: Episodes, horizon: int) -> None:
        self.episodes, self.horizon = episodes, horizon
        self.frames = frames_before(episodes)
        self.visits = visits_of(episodes)
        last = episodes.starts + episodes.lengths - 1
        self.last = np.zeros(episodes.steps, bool)
        self.last[last] = True
        self.ends = self.last & np.repeat(episodes.terminated, episodes.lengths)

    @property
    def recorded(self) -> Ways:
        """The ways of the recorded episodes themselves."""
        within = np.arange(self.horizon)[None]
        rows = self.episodes.starts[:, None] + within
        return np.where(within < self.episodes.lengths[:, None], rows, NOWHERE)

    def returns(self, ways: Ways) -> Float[np.ndarray, "ways m"]:
        rewards = np.concatenate([self.episodes.rewards, np.zeros_like(self.episodes.rewards[:1])])
        return np.stack([rewards[ways, i].sum(axis=1) for i in range(rewards.shape[1])], axis=1)

    def recombine(
        self, ways: Ways, preference: Float[np.ndarray, " ways"], count: int, rng: np.random.Generator
    ) -> Ways:
        """So many new ways. Each begins as one of the given, and now and then goes on as another.

        Which one is drawn, by preference, among all that visit the state, and by nothing else: with equal
        preferences outcomes stay as likely as they were recorded.
        """
        flat = np.flatnonzero(ways.ravel() != NOWHERE)
        row, mass = ways.ravel()[flat], np.repeat(preference, self.horizon)[flat]
        order = np.argsort(row, kind="stable")
        place, by_row = flat[order], np.cumsum(mass[order])
        first = np.searchsorted(row[order], np.arange(self.episodes.steps + 1))
        totals = np.append(0.0, by_row)
        by_visit = np.cumsum((totals[first[1:]] - totals[first[:-1]])[self.visits.rows])
        own = rng.choice(len(ways), count, p=preference / preference.sum())
        rate = rng.choice(JOINS, count) / self.horizon
        at, going, taken = own * self.horizon, np.ones(count, bool), np.full((count, self.horizon), NOWHERE)
        for t in range(self.horizon):
            here = ways.ravel()[at]
            taken[going, t] = here[going]
            going &= ~self.ends[here]
            following = np.minimum(at + 1, ways.size - 1)
            over = ((at + 1) % self.horizon == 0) | (ways.ravel()[following] == NOWHERE)
            visit, found = _draw(by_visit, self.visits.starts, self.visits.counts, self.frames[here] + 1, rng)
            step = self.visits.rows[visit]
            joined, _ = _draw(by_row, first[:-1], np.diff(first), step, rng)
            leave = found & ((rng.random(count) < rate) | over)
            going &= ~over | leave
            at = np.where(going, np.where(leave, place[joined], following), at)
        return taken

    def episodes_of(self, ways: Ways) -> Episodes:
        """The ways as episodes: the state before a step is that of the step itself."""
        lengths = np.sum(ways != NOWHERE, axis=1)
        rows = ways[ways != NOWHERE]
        last = rows[np.cumsum(lengths) - 1]
        recorded = self.episodes.observations
        observations = np.empty((len(rows) + len(lengths), *recorded.shape[1:]), recorded.dtype)
        places = np.arange(len(rows)) + np.repeat(np.arange(len(lengths)), lengths)
        observations[places] = recorded[self.frames[rows]]
        observations[np.cumsum(lengths + 1) - 1] = recorded[self.frames[last] + 1]
        return Episodes(
            observations=observations,
            actions=self.episodes.actions[rows],
            rewards=self.episodes.rewards[rows],
            lengths=lengths,
            terminated=self.ends[last],
            truncated=~self.ends[last],
            objectives=self.episodes.objectives,
        )


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
    mass: Float[np.ndarray, " k"],
    starts: Int[np.ndarray, " groups"],
    counts: Int[np.ndarray, " groups"],
    groups: Int[np.ndarray, " n"],
    rng: np.random.Generator,
) -> tuple[Int[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
    """An entry of every group given, and whether there is one: drawn by mass, given as cumulative sums."""
    first, after = starts[groups], starts[groups] + counts[groups]
    low = np.where(first > 0, mass[np.maximum(first, 1) - 1], 0.0)
    high = np.where(after > 0, mass[np.maximum(after, 1) - 1], 0.0)
    drawn = np.searchsorted(mass, low + rng.random(len(groups)) * (high - low), side="right")
    within = np.clip(drawn, first, np.maximum(after - 1, first))
    return np.minimum(within, len(mass) - 1), (counts[groups] > 0) & (high > low)
