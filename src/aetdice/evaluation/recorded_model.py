"""Episodes of a policy in the empirical model of discrete data: what followed each recorded state and action.

The model is as good as the data. Unlike a dual's claim, what a policy attains in it obeys the flow, and
counts what cloning lost.
"""

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from aetdice.data import Episodes
from aetdice.data.successors import followed, frames_before, number_rows
from aetdice.evaluation.nearest_model import MOST_DIMENSIONS, NearestModel
from aetdice.evaluation.policy import Policy


def model_of(episodes: Episodes, horizon: int) -> "RecordedModel | NearestModel | None":
    """The recorded model of the data, if they have one."""
    kind = kind_of_model(episodes)
    return None if kind is None else kind(episodes, horizon)


def kind_of_model(episodes: Episodes) -> "type[RecordedModel | NearestModel] | None":
    """None where states are neither numbered nor of so few dimensions that steps are near each other."""
    flat = episodes.observations.reshape(len(episodes.observations), -1)
    discrete = np.issubdtype(episodes.actions.dtype, np.integer)
    if discrete and episodes.actions.ndim != 1:
        return None
    if discrete and number_rows(flat) is not None:
        return RecordedModel
    dimensions = flat.shape[1] + (0 if discrete else episodes.actions[0].size)
    return NearestModel if dimensions <= MOST_DIMENSIONS else None


class RecordedModel:
    """Transitions as often as they were recorded, whatever the accrued reward and the time were."""

    def __init__(self, episodes: Episodes, horizon: int) -> None:
        flat = episodes.observations.reshape(len(episodes.observations), -1)
        numbers = number_rows(flat)
        if numbers is None or not np.issubdtype(episodes.actions.dtype, np.integer):
            raise TypeError("only whole numbers have a recorded model")
        self.horizon, self.episodes = horizon, episodes
        self.before = frames_before(episodes)
        self.numbers: Int[np.ndarray, " frames"] = numbers
        self.shown = np.zeros((int(numbers.max()) + 1, flat.shape[1]), flat.dtype)
        self.shown[numbers] = flat
        self.ends = np.zeros(episodes.steps, bool)
        self.ends[episodes.starts + episodes.lengths - 1] = episodes.terminated & ~episodes.truncated
        self.actions = int(episodes.actions.max()) + 1
        pair = numbers[self.before] * self.actions + episodes.actions.ravel()
        known = followed(episodes)
        known |= ~np.isin(pair, pair[known])  # what is seen last only is better than nothing
        rows = np.flatnonzero(known)
        self.by_pair = rows[np.argsort(pair[rows], kind="stable")]
        self.pair = pair[self.by_pair]
        self.by_state = rows[np.argsort(numbers[self.before][rows], kind="stable")]
        self.state = numbers[self.before][self.by_state]

    def sample_returns(
        self, policy: Policy, count: int, seed: int
    ) -> tuple[Float[np.ndarray, "count m"], float]:
        """R of so many episodes, and the share of their steps for which no such action was recorded.

        There a recorded step from the same state stands in; an episode ends where none was.
        """
        rng, key = np.random.default_rng(seed), jax.random.key(seed)
        starts = self.before[self.episodes.starts]
        here = self.numbers[starts[rng.integers(len(starts), size=count)]]
        accrued = np.zeros((count, self.episodes.rewards.shape[1]))
        going, unknown, steps = np.ones(count, bool), 0, 0
        for t in range(self.horizon):
            action = np.asarray(
                policy.sample(self.shown[here], accrued.astype(np.float32), t, jax.random.fold_in(key, t))
            )
            row, found = _draw(self.pair, here * self.actions + action, rng)
            other, left = _draw(self.state, here, rng)
            going &= left
            steps, unknown = steps + int(going.sum()), unknown + int(np.sum(going & ~found))
            step = np.where(found, self.by_pair[row], self.by_state[other])
            accrued += np.where(going[:, None], self.episodes.rewards[step], 0)
            going &= ~self.ends[step]
            here = np.where(going, self.numbers[self.before[step] + 1], here)
        return accrued, unknown / max(steps, 1)


def _draw(
    sorted_groups: Int[np.ndarray, " k"], wanted: Int[np.ndarray, " n"], rng: np.random.Generator
) -> tuple[Int[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
    """A place among those of the group wanted, each as likely, and whether there is one."""
    first, after = (np.searchsorted(sorted_groups, wanted, side=side) for side in ("left", "right"))
    drawn = first + (rng.random(len(wanted)) * (after - first)).astype(int)
    return np.minimum(drawn, len(sorted_groups) - 1), after > first
