"""Policy extraction: from an algorithm's sample weights to what every policy learns from."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32

from aetdice.algorithms import Weighing
from aetdice.algorithms.sampling import Courses, SampleWeights, cumulative_shares, in_units
from aetdice.config import ExtractionConfig, TrainingConfig
from aetdice.data.device import DeviceData
from aetdice.data.mapping import release, temporary
from aetdice.data.stored import StoredSteps
from aetdice.errors import InputError

FIRST_PART = 1 / 25
"""Of the longest episode: early oversampling fades as exp(-t / so much of it)."""


def behaviour_shares(data: DeviceData) -> Float[np.ndarray, " steps"]:
    """The share of the behaviour that each step is."""
    behaviour = np.asarray(data.behaviour, np.float64)
    return behaviour / behaviour.sum()


def sample_weights_for(
    weighing: Weighing | None,
    behaviour: Float[np.ndarray, " steps"],
    data: DeviceData,
    config: TrainingConfig,
    courses: int = 1,
) -> SampleWeights:
    """What a policy learns from: a share `floor` as the behaviour has it, the rest by its weights.

    D2 of docs/paper.md: steps are drawn in proportion to w instead of weighting uniform draws.
    π(a|s̃) is the same for any factor of w that depends on s̃ alone, so the mass that time steps
    conserve may be corrected before, and early steps be drawn more often. A twin, which nothing is weighed
    for, sees the plain data, and has one course.
    """
    extraction, share, course = config.extraction, behaviour, None
    if weighing is not None:
        own = np.asarray(weighing.weights, np.float64)
        total = own.sum()
        _check_total(total)
        share, course = (1 - extraction.floor) * own / total + extraction.floor * behaviour, weighing.courses
    shown = None if courses == 1 else _courses(course, share, data, courses)
    if extraction.early_oversampling:
        share = oversample_early(share, np.asarray(data.steps.time), extraction.early_oversampling)
    if not config.ablation.weighted_loss:
        return SampleWeights(jax.device_put(cumulative_shares(share)), None, shown)
    relative = jnp.asarray(share / np.maximum(behaviour, 1e-300), jnp.float32)
    return SampleWeights(jax.device_put(cumulative_shares(behaviour)), relative, shown)


def _courses(
    known: Int[Array, " steps"] | None,
    share: Float[np.ndarray, " steps"],
    data: DeviceData,
    courses: int,
) -> Courses:
    """What each step shows, and how likely an episode is to begin on each course."""
    plain = np.zeros(data.steps.count, np.uint8)
    course, first = plain if known is None else np.asarray(known, np.uint8), np.asarray(data.initial)
    counts = np.bincount(course[first], share[first], courses)
    return Courses(jnp.asarray(course), jnp.asarray(counts / counts.sum(), jnp.float32))


def oversample_early(
    share: Float[np.ndarray, " steps"], time: Int[np.ndarray, " steps"], early: float
) -> Float[np.ndarray, " steps"]:
    """Shares of which a part `early` lies on the first steps of episodes."""
    first = share * fading(time, int(time.max()) + 1)
    return (1 - early) * share + early * first / first.sum()


def fading(time: Int[np.ndarray, " steps"], longest: int) -> Float[np.ndarray, " steps"]:
    """From 1 at the first step, fast."""
    return np.exp(-time / (FIRST_PART * longest))


def _check_total(total: float) -> None:
    if not np.isfinite(total) or total <= 0:
        raise InputError("every ratio is zero: no step is worth cloning; use a larger beta")


def stored_cdf(
    own: Float[np.ndarray, " steps"], stored: StoredSteps, extraction: ExtractionConfig
) -> UInt32[np.ndarray, " steps"]:
    """What `sample_weights_for` makes of a policy's weights, where neither is in memory at once."""
    floor, early = extraction.floor, extraction.early_oversampling
    longest = int(stored.episodes.lengths.max())
    behaviour_total = sum(float(stored.weight(part).astype(np.float64).sum()) for part in stored.parts())
    own_total = sum(float(own[part].astype(np.float64).sum()) for part in stored.parts())
    _check_total(own_total)

    def plain(part: slice) -> Float[np.ndarray, " part"]:
        behaviour = stored.weight(part).astype(np.float64) / behaviour_total
        return (1 - floor) * own[part].astype(np.float64) / own_total + floor * behaviour

    def faded(part: slice) -> Float[np.ndarray, " part"]:
        return plain(part) * fading(stored.time(np.arange(part.start, part.stop)), longest)

    first_total = sum(float(faded(part).sum()) for part in stored.parts()) if early else 1.0

    def cumulative() -> Iterator[tuple[slice, Float[np.ndarray, " part"]]]:
        reached = 0.0
        for part in stored.parts():
            share = plain(part)
            if early:
                share = (1 - early) * share + early * faded(part) / first_total
            share[0] += reached
            sums = np.cumsum(share)
            reached = float(sums[-1])
            yield part, sums
            release(own)

    for _, sums in cumulative():
        total = sums[-1]
    cdf = temporary((stored.count,), np.uint32)
    for part, sums in cumulative():
        cdf[part] = in_units(sums, total)
        release(cdf)
    return cdf
