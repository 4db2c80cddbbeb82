"""What a model of the data is checked by: the twin against the log, and unseen episodes alone."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from aetdice.estimation.acting import Acting, Actor
from aetdice.estimation.counted_model import CountedModel
from aetdice.estimation.intervals import covariance, normal_quantile
from aetdice.estimation.models import Model
from aetdice.estimation.neighbour_model import NeighbourModel
from aetdice.estimation.opinions import Opinion
from aetdice.estimation.recording import Recording, Utilities, bootstrap_weights
from aetdice.estimation.replay import replay_errors
from aetdice.estimation.support import LEAST_EPISODES

ROLLOUTS = 10_000
NEIGHBOUR_ROLLOUTS = 1_000
APART_REPLICATES = 40
CHECK_REPLICATES = 12
PARTS = 4
CAUTION = 1.5
"""Several opinions are heard, so one must differ by so many widths of the noise to count."""
MOST_UNRECORDED = 0.002
"""Of a policy's steps, for the model of unseen episodes alone to be heard."""


def rollouts_in(model: Model) -> int:
    """How many episodes an estimate takes."""
    return ROLLOUTS if isinstance(model, CountedModel) else NEIGHBOUR_ROLLOUTS


class Reproduction(NamedTuple):
    """The twin, rolled out in the model, beside the log."""

    gaps: Utilities
    """By how much its k exceeds what was recorded, in every replicate."""
    agrees: bool
    """Within their noise: then it is the behaviour, and the model is right about it."""


def reproduce(model: Model, recording: Recording, behaviour: Acting, level: float, seed: int) -> Reproduction:
    """Whether the twin attains what was recorded."""
    weights = bootstrap_weights(recording.count, CHECK_REPLICATES, seed)
    found = model.roll_out(behaviour, recording.utilities_of, weights, rollouts_in(model) // 4, seed)
    gaps = found.utilities - recording.logged(weights)
    errors = np.sqrt(np.diag(covariance(gaps, found.noise, found.replicate_noise)))
    agrees = bool(np.all(np.abs(gaps[0]) <= CAUTION * normal_quantile(level) * errors))
    return Reproduction(gaps, agrees)


def model_errors(
    model: Model, recording: Recording, twin: Reproduction | None, seed: int
) -> Utilities | None:
    """By how much a model of neighbours is wrong about k of what is known; None of counted ones.

    About logged episodes that are done again, or else about the twin, which is the log as far as
    cloning goes.
    """
    if isinstance(model, CountedModel):
        return None
    found = replay_errors(model, recording.utilities_of, seed)
    return found if found is not None or twin is None else twin.gaps


def errors_of_parts(
    model: NeighbourModel,
    recording: Recording,
    acting: Actor,
    found: Float[np.ndarray, " n"],
    seed: int,
) -> Utilities:
    """By how much k differs in models of a quarter of the episodes each.

    Neighbours are further away there: what that changes tells of what their distance does to the estimate,
    which no bootstrap of the same neighbours shows.
    """
    order = np.random.default_rng(seed).permutation(recording.count)
    parts = [np.sort(order[i::PARTS]) for i in range(min(PARTS, recording.count))]
    each = [NeighbourModel(recording.episodes.select(part), model.horizon) for part in parts]
    count = rollouts_in(model) // PARTS
    played = [one.play(acting, count, seed + i).returns for i, one in enumerate(each)]
    return np.stack([recording.utilities_of(returns).mean(axis=0) for returns in played]) - found


def unheard(opinion: Opinion) -> Opinion:
    return opinion._replace(heard=False, why=f"{opinion.why}; cloning does not reproduce the log")


def unseen_alone(kept: Recording, acting: Acting, seed: int, whole: Model) -> Opinion:
    """The model of the episodes that the policy was not trained on, alone."""
    counted = isinstance(whole, CountedModel)
    weights = bootstrap_weights(kept.count, APART_REPLICATES if counted else APART_REPLICATES // 10, seed)
    model = whole.of(kept.episodes)
    found = model.roll_out(acting, kept.utilities_of, weights, rollouts_in(model) // 4, seed)
    unknown, size = found.course.unknown, found.course.effective_episodes
    heard = unknown <= MOST_UNRECORDED and size >= LEAST_EPISODES["supported"]
    why = f"for {unknown:.1%} there is nothing recorded"
    return Opinion("unseen episodes alone", found.utilities, heard, why)
