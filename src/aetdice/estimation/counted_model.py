"""The recorded model of discrete data: what followed each state and action, as often as it did.

Pooled over accrued reward and time, on which transitions do not depend. A replicate of the bootstrap
has other frequencies; to first order its k is that of the same rollouts, each weighed by
1 + Σ_t (p_b/p - 1) over what happened in it. So one set of rollouts serves all replicates.
"""

import numpy as np
import scipy.sparse as sp
from jaxtyping import Bool, Float, Int
from scipy.spatial import cKDTree

from aetdice.data.successors import frames_before, number_rows
from aetdice.estimation.acting import Actor, Augmented
from aetdice.estimation.recording import Recording, Weights
from aetdice.estimation.rollouts import Rollouts, effective_number

LEAST_COUNT = 5
"""Recorded steps of a state and action with more than one outcome below which they are thin."""


class CountedModel:
    """Outcomes of every recorded state and action."""

    def __init__(self, recording: Recording) -> None:
        data = recording.episodes
        flat = data.observations.reshape(len(data.observations), -1)
        numbers = number_rows(flat)
        if numbers is None or not np.issubdtype(data.actions.dtype, np.integer) or data.actions.ndim != 1:
            raise TypeError("only whole numbers can be counted")
        self.recording = recording
        before = frames_before(data)
        self.shown = np.zeros((int(numbers.max()) + 1, flat.shape[1]), flat.dtype)
        self.shown[numbers] = flat
        self.starts = numbers[before[data.starts]]
        self.actions = int(data.actions.max()) + 1
        used = recording.followed
        actions, ends, rewards = data.actions[used], recording.ends[used], data.rewards[used]
        state, after = numbers[before[used]], numbers[before[used] + 1]
        table = np.column_stack([state, actions, after, ends, rewards])
        _, rows, outcome, counts = np.unique(
            table, axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        outcome = outcome.reshape(-1)
        self.next, self.ends, self.reward = after[rows], ends[rows], rewards[rows]
        self.counts = counts.astype(float)
        code = state[rows] * self.actions + actions[rows]  # ascending, as np.unique sorted the table
        self.pairs, self.pair = np.unique(code, return_inverse=True)
        self.pair_total = np.bincount(self.pair, self.counts)
        self.first = np.searchsorted(self.pair, np.arange(len(self.pairs)))
        spread = self.shown.std(axis=0)
        self.spread = np.where(spread > 0, spread, 1.0)
        self.known_states = cKDTree(self.shown / self.spread)
        self.cumulative = np.concatenate([[0], np.cumsum(self.counts)])
        self.outcomes_of_pair = np.bincount(self.pair)
        self.by_episode = sp.csr_array(
            (np.ones(len(used)), (outcome, recording.episode[used])), shape=(len(rows), len(data))
        )

    @property
    def stochastic(self) -> bool:
        """Whether anything was followed by different things."""
        return bool((self.outcomes_of_pair > 1).any())

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

    def roll_out(self, acting: Actor, weights: Weights, count: int, seed: int) -> Rollouts:
        """So many episodes; for an action that was not recorded stands what it did in a similar state."""
        rng, horizon = np.random.default_rng(seed), self.recording.horizon
        deviations = self.deviations(weights)
        starts = rng.integers(len(self.starts), size=count)
        here = self.starts[starts]
        scores = self._start_scores(weights)[:, starts]
        accrued = np.zeros((count, self.reward.shape[1]))
        going, use = np.ones(count, bool), np.zeros(len(self.counts))
        steps = unknown = thin = 0
        for time in range(horizon):
            action = acting.sample(Augmented(self.shown[here], accrued, np.full(count, time)), rng)
            outcome, found = self._draw(here, np.asarray(action), rng)
            unknown += int(np.sum(going & ~found))
            steps += int(going.sum())
            pair = self.pair[outcome]
            few = (self.pair_total[pair] < LEAST_COUNT) & self.stochastic
            thin += int(np.sum(going & found & few))
            accrued += np.where(going[:, None], self.reward[outcome], 0)
            use += np.bincount(outcome[going], minlength=len(use))
            scores += np.where(going & found, deviations[:, outcome], np.float32(0))
            going = going & ~self.ends[outcome]
            here = np.where(going, np.where(found, self.next[outcome], self._moved(here, outcome)), here)
            if not going.any():
                break
        utilities = self.recording.utilities_of(accrued)
        centred = utilities - utilities.mean(axis=0)
        noise = np.atleast_2d(np.cov(utilities, rowvar=False)) / count
        return Rollouts(
            returns=accrued,
            utilities=utilities.mean(axis=0) + scores.astype(float) @ centred / count,
            noise=noise,
            replicate_noise=np.zeros_like(noise),
            unknown=unknown / max(steps, 1),
            thin=thin / max(steps, 1),
            effective_episodes=effective_number(self.by_episode.T @ (use / self.counts)),
        )

    def _start_scores(self, weights: Weights) -> Float[np.ndarray, "replicates episodes"]:
        """p_b/p - 1 of every episode's first state."""
        _, group = np.unique(self.starts, return_inverse=True)
        mass = np.stack([np.bincount(group, own) for own in weights]) / weights.sum(axis=1, keepdims=True)
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
            rows = np.flatnonzero(self.pairs % self.actions == own)
            rows = rows if len(rows) else np.arange(len(self.pairs))
            tree = cKDTree(self.shown[self.pairs[rows] // self.actions] / self.spread)
            place[ours] = rows[tree.query(self.shown[here[ours]] / self.spread)[1]]
        return place

    def _moved(self, here: Int[np.ndarray, " n"], outcome: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        """Where another state's outcome leads from here: by as much, or to the same if that is nowhere."""
        origin = self.pairs[self.pair[outcome]] // self.actions
        after = self.next[outcome]
        wanted = self.shown[here] + self.shown[after] - self.shown[origin]
        distance, place = self.known_states.query(wanted / self.spread)
        return np.where(distance < 1e-9, place, after)
