"""Episodes of a policy in the recorded steps of continuous data: what the nearest one did, done from here.

For a few dimensions. Near the data it is right to a few per cent; how often a policy is far from all that
was recorded says where it is not.
"""

import jax
import numpy as np
from jaxtyping import Float
from scipy.spatial import cKDTree

from aetdice.data import Episodes
from aetdice.data.successors import followed, frames_before
from aetdice.evaluation.policy import Policy

MOST_DIMENSIONS = 8
"""Of observations and continuous actions together, for neighbours to be near."""
FAR = 3.0
"""In median steps: beyond that distance nothing like it was recorded."""


class NearestModel:
    """Steps by where they were taken and by their action; they move a state as they moved theirs."""

    def __init__(self, episodes: Episodes, horizon: int) -> None:
        frames = episodes.observations.reshape(len(episodes.observations), -1).astype(np.float64)
        self.horizon, self.episodes = horizon, episodes
        before = frames_before(episodes)
        spread = frames.std(axis=0)
        self.spread = np.where(spread > 1e-9, spread, 1.0)
        self.moves = frames[before + 1] - frames[before]
        self.far = FAR * np.median(np.linalg.norm(self.moves / self.spread, axis=1))
        self.initial = frames[before[episodes.starts]]
        self.ends = np.zeros(episodes.steps, bool)
        self.ends[episodes.starts + episodes.lengths - 1] = episodes.terminated & ~episodes.truncated
        self.places = frames[before] / self.spread
        self.discrete = np.issubdtype(episodes.actions.dtype, np.integer)
        self.actions = actions = episodes.actions.reshape(episodes.steps, -1).astype(np.float64)
        self.slopes = np.linalg.lstsq(
            np.column_stack([np.ones(len(actions)), self.places, actions]), self.moves, rcond=None
        )[0][-actions.shape[1] :]
        """How moves change with continuous actions, on the whole."""
        reach = actions.std(axis=0)
        self.reach = np.where(reach > 1e-9, reach, 1.0)
        kinds = episodes.actions if self.discrete else np.zeros(episodes.steps, int)
        known = followed(episodes)
        self.rows = [np.flatnonzero(known & (kinds == kind)) for kind in range(int(kinds.max()) + 1)]
        points = self.places if self.discrete else np.column_stack([self.places, actions / self.reach])
        self.trees = [cKDTree(points[rows]) if len(rows) else None for rows in self.rows]

    def sample_returns(
        self, policy: Policy, count: int, seed: int
    ) -> tuple[Float[np.ndarray, "count m"], float]:
        """R of so many episodes, and the share of their steps that were far from all recorded ones."""
        rng, key = np.random.default_rng(seed), jax.random.key(seed)
        state = self.initial[rng.integers(len(self.initial), size=count)]
        accrued = np.zeros((count, self.episodes.rewards.shape[1]))
        courses = policy.draw_courses(count, jax.random.fold_in(key, self.horizon))
        going, unknown, steps = np.ones(count, bool), 0, 0
        for t in range(self.horizon):
            seen, earned = state.astype(np.float32), accrued.astype(np.float32)
            now = jax.random.fold_in(key, t)
            action = np.asarray(policy.sample(seen, earned, t, now, courses=courses))
            row, distance = self._nearest(state, action)
            steps, unknown = steps + int(going.sum()), unknown + int(np.sum(going & (distance > self.far)))
            accrued += np.where(going[:, None], self.episodes.rewards[row], 0)
            going &= ~self.ends[row]
            state = np.where(going[:, None], state + self.moves[row] + self._apart(action, row), state)
            if not going.any():
                break
        return accrued, unknown / max(steps, 1)

    def _apart(self, action: np.ndarray, row: np.ndarray) -> Float[np.ndarray, "count o"] | float:
        """What the difference between a continuous action and the recorded one makes of the move."""
        if self.discrete:
            return 0.0
        return np.asarray((action.reshape(len(row), -1) - self.actions[row]) @ self.slopes)

    def _nearest(
        self, state: Float[np.ndarray, "count o"], action: np.ndarray
    ) -> tuple[np.ndarray, Float[np.ndarray, " count"]]:
        """The nearest recorded step with each action, or one like it, and how far it was taken from here."""
        row, distance, place = np.zeros(len(state), int), np.full(len(state), np.inf), state / self.spread
        kinds = action if self.discrete else np.zeros(len(state), int)
        like = [] if self.discrete else [action.reshape(len(state), -1) / self.reach]
        asked = np.column_stack([place, *like])
        for kind, (rows, tree) in enumerate(zip(self.rows, self.trees, strict=True)):
            if tree is not None and (here := np.flatnonzero(kinds == kind)).size:
                row[here] = rows[tree.query(asked[here])[1]]
                distance[here] = np.linalg.norm(place[here] - self.places[row[here]], axis=1)
        return row, distance
