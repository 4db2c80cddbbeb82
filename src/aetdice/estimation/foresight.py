"""How often a model of neighbours is wrong about a step, by how far the nearest recorded one is.

Read from the log itself: models of a few of its episodes foretell steps of the others. The fewer they
are, the further the nearest one is.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.optimize import isotonic_regression

from aetdice.data.noise import chance_share
from aetdice.data.successors import followed, frames_before
from aetdice.estimation.models import Model
from aetdice.estimation.neighbour_model import NeighbourModel
from aetdice.estimation.rollouts import Course

MOST, PARTS = 2, (8, 32, 128)
"""One of so many episodes makes a model of the others: the best that can be had so, then worse ones."""
LEAST_EPISODES = 5
ASKED = 3_000
"""Steps that each model foretells."""
WRONG = 0.5
"""A step is foretold wrongly if it is missed by so much of what steps usually do."""
LEAST_CHANCE = 1e-3
"""With less, whatever is wrong is ignorance; with more, what the best model has wrong too is chance."""


class Foresight(NamedTuple):
    """Shares of steps that are foretold wrongly and are no whim of chance; they grow with the distance."""

    distances: Float[np.ndarray, " k"]
    wrong: Float[np.ndarray, " k"]

    def missed(self, distances: Float[np.ndarray, " steps"]) -> float:
        """The share of steps so far from recorded ones; what is further than ever seen is missed."""
        place = np.searchsorted(self.distances, distances)
        return float(np.append(self.wrong, 1.0)[place].mean())


def foresight_of(model: NeighbourModel, seed: int) -> Foresight | None:
    """Of a model, by models of parts of its data; None where there are too few episodes.

    What is wrong by chance depends on the step. So where there is chance, the same steps are foretold by
    the best of these models as well, and those that it has nothing near are left out.
    """
    data, rng = model.episodes, np.random.default_rng(seed)
    order = rng.permutation(len(data))
    counts = [len(data) // part for part in (MOST, *PARTS)]
    counts = [count for count in counts if count >= LEAST_EPISODES]
    if not counts:
        return None
    others = np.flatnonzero(followed(data) & np.isin(model.episode, order[counts[0] :]))
    rows = rng.permutation(others)[:ASKED]
    found = [_foretold(model, order[:count], rows) for count in counts]
    best, wrong_of_best = found[0]
    if chance_share(data) > LEAST_CHANCE:
        near = best <= np.median(best)
        found = [(far[near], wrong[near].astype(float) - wrong_of_best[near]) for far, wrong in found]
    distance, wrong = (np.concatenate(column).astype(float) for column in zip(*found, strict=True))
    there = np.flatnonzero(np.isfinite(distance))
    there = there[np.argsort(distance[there], kind="stable")]
    if not len(there):
        return None
    return Foresight(distance[there], np.clip(isotonic_regression(wrong[there]).x, 0, 1))


def foreseen(model: Model, course: Course, seed: int) -> Course:
    """With the share of steps that neighbours foretell wrongly in the place of those that have none near."""
    found = foresight_of(model, seed) if isinstance(model, NeighbourModel) else None
    return course if found is None else course._replace(unknown=found.missed(course.distances))


def _foretold(
    model: NeighbourModel, known: Int[np.ndarray, " episodes"], rows: Int[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
    """How far steps are from those of the known episodes, and whether these foretell them wrongly."""
    data = model.episodes
    apart = NeighbourModel(data.select(np.sort(known)), model.horizon)
    told = apart.foretell(data.observations[frames_before(data)[rows]], data.actions[rows], 0)
    moved = np.linalg.norm(told.move * apart.spread / model.spread - model.move[rows], axis=1)
    brought = np.linalg.norm(told.reward - model.reward[rows], axis=1)
    usual = np.median(np.linalg.norm(model.move, axis=1)), np.linalg.norm(model.reward.std(axis=0))
    return told.distance, (moved > WRONG * usual[0]) | (brought > WRONG * usual[1])
