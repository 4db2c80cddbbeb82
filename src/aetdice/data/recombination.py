"""New episodes from parts of recorded ones, joined where they are in the same state.

What follows a state and an action depends neither on the accrued reward nor on the time, so a recorded
way through the states may be entered from any other that comes to the same state, whatever was accrued
by then. On augmented states alone nothing can be joined: there, every way that begins as one episode and
goes on as another ends with the return of the other.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.spatial import cKDTree

from aetdice.data.episodes import Episodes
from aetdice.data.successors import followed, frames_before, number_rows

VISITS = 16
"""Ways to go on from a state that are looked at: random ones, or the nearest where states are continuous."""
NEAR = 1.0
"""Continuous states are joined that are nearer than so many median steps."""
SCATTER = 0.2
"""By how much of that distance states are moved at random before it is taken."""
LEANINGS = (0.0, 1.0, 2.0, 4.0)
"""How strongly a way leans towards actions, in nats; each keeps one of them."""
PLANNED = 8
"""Of these, so many are looked at where the best way on is planned."""
NOWHERE = -1
BLOCK = 1 << 14
"""Steps whose joins are looked at together."""

Ways = Int[np.ndarray, "_ horizon"]
"""Series of recorded steps, by their rows; `NOWHERE` after the end."""


class Joins(NamedTuple):
    """Ways that go on as another episode, each with the return it would have if that is known."""

    way: Int[np.ndarray, " joins"]
    time: Int[np.ndarray, " joins"]
    """The last step of the way that is kept."""
    row: Int[np.ndarray, " joins"]
    """The recorded step that follows."""
    returns: Float[np.ndarray, "joins m"]

    def take(self, rows: Int[np.ndarray, " k"]) -> "Joins":
        return Joins(*(column[rows] for column in self))


class Recombination:
    """Recorded steps, and where they meet."""

    def __init__(
        self, episodes: Episodes, horizon: int, rng: np.random.Generator, near: float = NEAR
    ) -> None:
        self.episodes, self.horizon = episodes, horizon
        self.frames = frames_before(episodes)
        self.paid = np.concatenate([np.zeros_like(episodes.rewards[:1]), np.cumsum(episodes.rewards, axis=0)])
        self.after = np.repeat(episodes.starts + episodes.lengths, episodes.lengths)
        """The row after the last one of every step's episode."""
        self.terminates = np.repeat(episodes.terminated, episodes.lengths)
        self.followed = followed(episodes)
        self.visits = visits_of(episodes, rng, near)

    @property
    def recorded(self) -> Ways:
        """The ways of the recorded episodes themselves."""
        within = np.arange(self.horizon)[None]
        rows = self.episodes.starts[:, None] + within
        return np.where(within < self.episodes.lengths[:, None], rows, NOWHERE)

    def joins(self, ways: Ways) -> Iterator[Joins]:
        """All ways to leave one of the ways once for a recorded episode that ends by the horizon, in blocks.

        Ends that cannot be seen, since the recording stops before the horizon, do not count.
        """
        way, time = np.nonzero(ways != NOWHERE)
        accrued = self._accrued(ways)
        for first in range(0, len(way), BLOCK):
            w, t = way[first : first + BLOCK], time[first : first + BLOCK]
            found = self.visits[self.frames[ways[w, t]] + 1]
            place, slot = np.nonzero(found != NOWHERE)
            row, w, t = found[place, slot], w[place], t[place]
            last = np.minimum(self.after[row], row + self.horizon - t - 1)
            whole = (last - row == self.horizon - t - 1) | (self.terminates[row] & (last == self.after[row]))
            goes_on = (last > row) & ~self._ends(ways[w, t])
            own = whole & goes_on & (row != ways[w, np.minimum(t + 1, self.horizon - 1)])
            w, t, row, last = (each[own] for each in (w, t, row, last))
            yield Joins(w, t, row, accrued[w, t] + self.paid[last] - self.paid[row])

    def plan(self, weights: Float[np.ndarray, " m"]) -> Int[np.ndarray, " steps"]:
        """For every step the one near its end from which most of w·R can be had, `NOWHERE` after the end.

        A stationary plan, the best first move of H; recordings that stop lead nowhere.
        """
        reward = (self.episodes.rewards @ weights).astype(np.float32)
        rows = np.arange(self.episodes.steps)
        own = np.where(rows + 1 < self.after, rows + 1, NOWHERE)
        near = np.column_stack([own, self.visits[self.frames + 1][:, :PLANNED]])
        last = self._ends(rows)
        value = reward
        for _ in range(self.horizon - 1):
            there = np.append(value, np.float32(-np.inf))[near]
            value = reward + np.where(last, 0, there.max(axis=1))
        best = np.take_along_axis(near, there.argmax(axis=1)[:, None], axis=1)[:, 0]
        return np.where(last, NOWHERE, best)

    def planned_returns(self, plan: Int[np.ndarray, " steps"]) -> Float[np.ndarray, "_ m"]:
        """Of all ways to leave a recorded episode for a plan, which is then followed until the horizon."""
        ends, ways = self._ends(np.arange(self.episodes.steps)), self.recorded
        gain, dead = self.episodes.rewards[plan], (plan == NOWHERE) & ~ends
        later, accrued, found = np.zeros_like(gain), self._accrued(ways), []
        for t in reversed(range(self.horizon - 1)):
            later = np.where(ends[:, None], 0, np.where(dead[:, None], np.nan, gain + later[plan]))
            way = np.flatnonzero(ways[:, t] != NOWHERE)
            found.append(accrued[way, t] + later[ways[way, t]])
        returns = np.concatenate(found)
        return returns[np.all(np.isfinite(returns), axis=1)]

    def drawn(self, ways: Ways, count: int, rng: np.random.Generator) -> Joins:
        """Joins drawn at random, about so many: those that lead to a later time do not count.

        Nothing that happened later is looked at, so whatever follows is as likely as it was recorded.
        """
        way = rng.integers(len(ways), size=count)
        time = rng.integers(np.maximum(np.sum(ways[way] != NOWHERE, axis=1), 1))
        found = self.visits[self.frames[ways[way, time]] + 1]
        row = found[np.arange(count), rng.integers(found.shape[1], size=count)]
        recorded_at = row - np.repeat(self.episodes.starts, self.episodes.lengths)[row]
        ends = self._ends(ways[way, time])
        kept = ~ends & (row != NOWHERE) & (time + 1 < self.horizon) & (recorded_at <= time + 1)
        none = np.zeros((int(kept.sum()), self.paid.shape[1]))
        return Joins(way[kept], time[kept], row[kept], none)

    def tilted(self, count: int, rng: np.random.Generator) -> Ways:
        """Ways that join at every step, each with a leaning of its own towards some of the actions.

        They cover more than what was recorded, and look at actions alone, never at what came of them.
        """
        actions = self.episodes.actions
        leaning = rng.standard_normal((count, int(actions.max()) + 1)) * rng.choice(LEANINGS, (count, 1))
        frame = self.frames[self.episodes.starts[rng.integers(len(self.episodes), size=count)]]
        ways, going = np.full((count, self.horizon), NOWHERE), np.ones(count, bool)
        for t in range(self.horizon):
            found = self.visits[frame]
            going &= found[:, 0] != NOWHERE
            drawn = rng.gumbel(size=found.shape) + np.take_along_axis(leaning, actions[found], axis=1)
            known = self.followed[found] | (t + 1 == self.horizon)
            row = found[np.arange(count), np.where(known, drawn, -np.inf).argmax(axis=1)]
            ways[going, t] = row[going]
            going &= ~self._ends(row) & self.followed[row]
            frame = self.frames[row] + 1
        return ways[ways[:, 0] != NOWHERE]

    def follow(self, ways: Ways, joins: Joins) -> Ways:
        """The ways that go on as the joins say."""
        times = np.arange(self.horizon)[None]
        onward = joins.row[:, None] + times - joins.time[:, None] - 1
        there = onward < self.after[joins.row][:, None]
        return np.where(times <= joins.time[:, None], ways[joins.way], np.where(there, onward, NOWHERE))

    def returns(self, ways: Ways) -> Float[np.ndarray, "_ m"]:
        return self._accrued(ways)[:, -1]

    def _accrued(self, ways: Ways) -> Float[np.ndarray, "_ horizon m"]:
        rewards = np.concatenate([self.episodes.rewards, np.zeros_like(self.episodes.rewards[:1])])
        return np.cumsum(rewards[ways], axis=1)

    def _ends(self, rows: Int[np.ndarray, " k"]) -> Bool[np.ndarray, " k"]:
        """Whether steps terminate their episodes."""
        return self.terminates[rows] & (rows + 1 == self.after[rows])

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
        terminated = self._ends(last)
        return replace(
            self.episodes,
            observations=observations,
            actions=self.episodes.actions[rows],
            rewards=self.episodes.rewards[rows],
            lengths=lengths,
            terminated=terminated,
            truncated=~terminated,
            origin=None,
        )


def visits_of(
    episodes: Episodes, rng: np.random.Generator, near: float = NEAR
) -> Int[np.ndarray, "frames visits"]:
    """For every frame some of the steps by which its state was left, or one very near to it."""
    flat = episodes.observations.reshape(len(episodes.observations), -1)
    before = frames_before(episodes)
    numbers = number_rows(flat)
    if numbers is None:
        spread = flat.std(axis=0)
        scaled = flat / np.where(spread > 1e-6, spread, 1.0)
        radius = near * np.median(np.linalg.norm(scaled[before + 1] - scaled[before], axis=1))
        # Of many steps from one place, where something rests, others are the nearest to each frame.
        scattered = scaled + SCATTER * radius * rng.standard_normal(scaled.shape)
        tree = cKDTree(scattered[before])
        _, found = tree.query(scattered, VISITS, distance_upper_bound=radius, workers=-1)
        return np.where(found < episodes.steps, found, NOWHERE)
    order = np.argsort(numbers[before], kind="stable")
    first, after = (np.searchsorted(numbers[before][order], numbers, side=side) for side in ("left", "right"))
    drawn = first[:, None] + (rng.random((len(flat), VISITS)) * (after - first)[:, None]).astype(int)
    return np.where((after > first)[:, None], order[np.minimum(drawn, len(order) - 1)], NOWHERE)
