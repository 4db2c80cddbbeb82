"""The recorded model of discrete data: what followed each state and action, as often as it did.

Pooled over accrued reward, on which transitions do not depend, and over time unless it is `timed`.
A replicate of the bootstrap has other frequencies; to first order its k is that of the same rollouts,
each weighed by 1 + Σ_t (p_b/p - 1) over what happened in it. So one set of rollouts serves all replicates.
"""

import numpy as np
import scipy.sparse as sp
from jaxtyping import Bool, Float, Int, Shaped
from scipy.spatial import cKDTree

from aetdice.data import Episodes
from aetdice.data.successors import ending_steps, followed, frames_before, number_rows
from aetdice.estimation.acting import Actor, Augmented
from aetdice.estimation.recording import Weights
from aetdice.estimation.rollouts import Course, Rollouts, Utility

LEAST_COUNT = 5
"""Recorded steps of a state and action with more than one outcome below which they are thin."""


class CountedModel:
    """Outcomes of every recorded state and action."""

    def __init__(self, episodes: Episodes, horizon: int, timed: bool = False) -> None:
        flat = episodes.observations.reshape(len(episodes.observations), -1)
        self.size = flat.shape[1]
        if timed:
            begun = np.repeat(episodes.starts + np.arange(len(episodes)), episodes.lengths + 1)
            flat = np.column_stack([flat, np.arange(len(flat)) - begun])
        numbers = number_rows(flat)
        if (
            numbers is None
            or not np.issubdtype(episodes.actions.dtype, np.integer)
            or episodes.actions.ndim != 1
        ):
            raise TypeError("only whole numbers can be counted")
        self.episodes, self.horizon, self.timed = episodes, horizon, timed
        before = frames_before(episodes)
        self.shown = np.zeros((int(numbers.max()) + 1, flat.shape[1]), flat.dtype)
        self.shown[numbers] = flat
        self.starts = numbers[before[episodes.starts]]
        self.actions = int(episodes.actions.max()) + 1
        pair, known = numbers[before] * self.actions + episodes.actions, followed(episodes)
        used = np.flatnonzero(known | ~np.isin(pair, pair[known]))  # a last step is better than nothing
        ends, rewards = ending_steps(episodes)[used], episodes.rewards[used]
        pair, after = pair[used], numbers[before[used] + 1]
        outcome, rows, counts = _distinct([pair, after, ends, *rewards.T])
        self.next, self.ends, self.reward = after[rows], ends[rows], rewards[rows]
        self.counts = counts.astype(float)
        self.pairs, self.pair = np.unique(pair[rows], return_inverse=True)
        self.pair_total = np.bincount(self.pair, self.counts)
        self.first = np.searchsorted(self.pair, np.arange(len(self.pairs)))
        spread = self.shown.std(axis=0)
        self.spread = np.where(spread > 0, spread, 1.0)
        self.known_states = cKDTree(self.shown / self.spread)
        self.trees: dict[int, tuple[Int[np.ndarray, " pairs"], cKDTree]] = {}
        self.cumulative = np.concatenate([[0], np.cumsum(self.counts)])
        episode = np.repeat(np.arange(len(episodes)), episodes.lengths)[used]
        self.by_episode = sp.csr_array(
            (np.ones(len(used)), (outcome, episode)), shape=(len(rows), len(episodes))
        )

    def of(self, episodes: Episodes) -> "CountedModel":
        """A model of the same kind."""
        return CountedModel(episodes, self.horizon, self.timed)

    @property
    def stochastic(self) -> bool:
        """Whether anything was followed by different things."""
        return len(self.pair) > len(self.pairs)

    def deviations(self, weights: Weights) -> Float[np.ndarray, "replicates outcomes"]:
        """p_b/p - 1 of every outcome; 0 where a replicate has none of a state and action."""
        own = (self.by_episode @ weights.T).T
        groups = sp.csr_array(
            (np.ones(len(self.pair)), (self.pair, np.arange(len(self.pair)))),
            shape=(len(self.pairs), len(self.pair)),
        )
        total = (groups @ own.T).T[:, self.pair]
        share = own / np.maximum(total, 1e-300)
        known = self.counts / self.pair_total[self.pair]
        return np.where(total > 0, share / known - 1, 0.0).astype(np.float32)

    def play(self, acting: Actor, count: int, seed: int) -> Course:
        """So many episodes; for an action that was not recorded stands what it did in a similar state."""
        return self._course(acting, np.zeros((0, len(self.episodes))), count, seed)[0]

    def roll_out(self, acting: Actor, utility: Utility, weights: Weights, count: int, seed: int) -> Rollouts:
        """The same, and k of every replicate."""
        course, scores = self._course(acting, weights, count, seed)
        utilities = utility(course.returns)
        centred = utilities - utilities.mean(axis=0)
        noise = np.atleast_2d(np.cov(utilities, rowvar=False)) / count
        return Rollouts(
            course=course,
            utilities=utilities.mean(axis=0) + scores.astype(float) @ centred / count,
            noise=noise,
            replicate_noise=np.zeros_like(noise),
        )

    def _course(
        self, acting: Actor, weights: Weights, count: int, seed: int
    ) -> tuple[Course, Float[np.ndarray, "replicates count"]]:
        """The rollouts, and by how much likelier each is in every replicate."""
        rng, deviations = np.random.default_rng(seed), self.deviations(weights)
        starts = rng.integers(len(self.starts), size=count)
        here = self.starts[starts]
        scores = self._start_scores(weights)[:, starts]
        accrued = np.zeros((count, self.reward.shape[1]))
        going, use = np.ones(count, bool), np.zeros(len(self.counts))
        steps = unknown = thin = 0
        for time in range(self.horizon):
            action = acting.sample(
                Augmented(self.shown[here, : self.size], accrued, np.full(count, time)), rng
            )
            outcome, found = self._draw(here, np.asarray(action), rng)
            few = (self.pair_total[self.pair[outcome]] < LEAST_COUNT) & self.stochastic
            unknown, steps = unknown + int(np.sum(going & ~found)), steps + int(going.sum())
            thin += int(np.sum(going & found & few))
            accrued += np.where(going[:, None], self.reward[outcome], 0)
            use += np.bincount(outcome[going], minlength=len(use))
            scores += np.where(going & found, deviations[:, outcome], np.float32(0))
            going = going & ~self.ends[outcome]
            here = np.where(going, self._moved(here, outcome, ~found), here)
            if not going.any():
                break
        by_episode = self.by_episode.T @ (use / self.counts)
        return Course(accrued, unknown / max(steps, 1), thin / max(steps, 1), by_episode), scores

    def _start_scores(self, weights: Weights) -> Float[np.ndarray, "replicates episodes"]:
        """p_b/p - 1 of every episode's first state."""
        _, group = np.unique(self.starts, return_inverse=True)
        members = sp.csr_array((np.ones(len(group)), (np.arange(len(group)), group)))
        mass = weights @ members / weights.sum(axis=1, keepdims=True)
        return (mass / (np.bincount(group) / len(group)) - 1)[:, group].astype(np.float32)

    def _draw(
        self, here: Int[np.ndarray, " n"], action: Int[np.ndarray, " n"], rng: np.random.Generator
    ) -> tuple[Int[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
        """An outcome each, and whether the state and action were recorded."""
        code = here * self.actions + np.minimum(action, self.actions - 1)
        pair = np.minimum(np.searchsorted(self.pairs, code), len(self.pairs) - 1)
        found = (self.pairs[pair] == code) & (action < self.actions)
        lost = np.flatnonzero(~found)
        pair[lost] = self._nearest(here[lost], action[lost])
        first, total = self.cumulative[self.first[pair]], self.pair_total[pair]
        drawn = np.searchsorted(self.cumulative, first + rng.random(len(here)) * total, side="right") - 1
        return np.clip(drawn, 0, len(self.counts) - 1), found

    def _nearest(self, here: Int[np.ndarray, " n"], action: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        """The recorded pair with the same action whose state looks most alike; with any, if it has none."""
        place = np.zeros(len(here), int)
        for own in np.unique(action):
            ours = np.flatnonzero(action == own)
            if own not in self.trees:
                rows = np.flatnonzero(self.pairs % self.actions == own)
                rows = rows if len(rows) and own < self.actions else np.arange(len(self.pairs))
                known = self.shown[self.pairs[rows] // self.actions]
                self.trees[own] = rows, cKDTree(known / self.spread)
            rows, tree = self.trees[own]
            place[ours] = rows[tree.query(self.shown[here[ours]] / self.spread)[1]]
        return place

    def _moved(
        self, here: Int[np.ndarray, " n"], outcome: Int[np.ndarray, " n"], lost: Bool[np.ndarray, " n"]
    ) -> Int[np.ndarray, " n"]:
        """Where another state's outcome leads from here: by as much, or to the same if that is nowhere."""
        found = self.next[outcome]
        if not lost.any():
            return found
        origin = self.pairs[self.pair[outcome[lost]]] // self.actions
        wanted = self.shown[here[lost]] + self.shown[found[lost]] - self.shown[origin]
        distance, place = self.known_states.query(wanted / self.spread)
        found[lost] = np.where(distance < 1e-9, place, found[lost])
        return found


def _distinct(
    columns: list[Shaped[np.ndarray, " rows"]],
) -> tuple[Int[np.ndarray, " rows"], Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
    """For every row which of the distinct ones it is, in ascending order; their first rows; their counts."""
    number = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values, place = np.unique(column, return_inverse=True)
        number = np.unique(number * len(values) + place, return_inverse=True)[1]
    _, rows, counts = np.unique(number, return_index=True, return_counts=True)
    return number, rows, counts
