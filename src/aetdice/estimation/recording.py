"""Logged episodes as estimators see them: augmented steps, what they are worth, and who saw them."""

from dataclasses import dataclass

import equinox as eqx
import numpy as np
from jaxtyping import Float, Int

from aetdice.data import Episodes, augment
from aetdice.data.augmentation import Transitions
from aetdice.estimation.acting import Augmented
from aetdice.objectives import Objective, in_float64

Weights = Float[np.ndarray, "replicates episodes"]
"""How often each replicate of the bootstrap counts every episode; the mean of a row is 1."""
Utilities = Float[np.ndarray, "replicates n"]
"""k = E[F(R)], as every replicate has it."""


@dataclass(frozen=True, eq=False)
class Recording:
    """A dataset on augmented states under one objective."""

    episodes: Episodes
    objective: Objective
    horizon: int
    steps: Transitions
    episode: Int[np.ndarray, " steps"]
    """Of every step."""
    uncensored: Float[np.ndarray, " steps"]
    """1/Q_t: for how many a step stands, because recordings were cut."""

    @classmethod
    def of(cls, episodes: Episodes, objective: Objective, horizon: int) -> "Recording":
        episodes = episodes.settled()
        steps = augment(episodes, objective.utility, horizon)
        number = np.repeat(np.arange(len(episodes)), episodes.lengths)
        return cls(episodes, objective, horizon, steps, number, steps.weights * len(episodes))

    @property
    def count(self) -> int:
        return len(self.episodes)

    @property
    def reach(self) -> int:
        """After how many steps nothing was recorded any more; the horizon, if every episode was over."""
        longest = int(self.episodes.lengths.max())
        goes_on = self.steps.bootstraps[self.at(longest - 1)].any()
        return longest if goes_on else self.horizon

    @property
    def before(self) -> Augmented:
        """The states of the steps."""
        shown = self.steps.observations.reshape(self.episodes.steps, -1)
        return Augmented(shown, self.steps.accrued, self.steps.time)

    @property
    def after(self) -> Augmented:
        """The states that follow; what is beyond the horizon counts as its last moment."""
        shown = self.steps.next_observations.reshape(self.episodes.steps, -1)
        later = np.minimum(self.steps.time + 1, self.horizon - 1)
        return Augmented(shown, self.steps.next_accrued, later)

    def at(self, time: int) -> Int[np.ndarray, " rows"]:
        """The steps at a time."""
        return self.episodes.starts[self.episodes.lengths > time] + time

    def utilities_of(self, returns: Float[np.ndarray, "k m"]) -> Float[np.ndarray, "k n"]:
        """F(R) of every row."""
        return np.asarray(in_float64(eqx.filter_vmap(self.objective.utility))(returns))

    def logged(self, weights: Weights) -> Utilities:
        """k of the recorded behaviour itself: Σ_t r̃, each step standing for those that were cut."""
        worth = self.steps.transformed_rewards * self.uncensored[:, None]
        sums = np.add.reduceat(worth, self.episodes.starts, axis=0)
        return self.steps.zero_utility + weights @ sums / weights.sum(axis=1, keepdims=True)


def bootstrap_weights(episodes: int, replicates: int, seed: int) -> Weights:
    """Episodes drawn with replacement; the first row counts each of them once."""
    drawn = np.random.default_rng(seed).multinomial(
        episodes, np.full(episodes, 1 / episodes), size=replicates
    )
    return np.concatenate([np.ones((1, episodes)), drawn.astype(float)])
