"""Policy extraction: from an algorithm's sample weights to what every policy learns from."""

from collections.abc import Iterator, Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int, UInt32

from aetdice.algorithms import Weighing
from aetdice.algorithms.sampling import Courses, SampleWeights, cumulative_shares, in_units
from aetdice.config import ExtractionConfig, TrainingConfig
from aetdice.data.device import DeviceData
from aetdice.data.mapping import release, temporary
from aetdice.data.stored import StoredSteps
from aetdice.errors import InputError

FIRST_PART = 1 / 25
"""Of the longest episode: early oversampling fades as exp(-t / so much of it)."""


def sample_weights_for(
    weighings: Sequence[Weighing], twins: int, data: DeviceData, config: TrainingConfig, courses: int = 1
) -> SampleWeights:
    """What every policy learns from: a share `floor` as the behaviour has it, the rest by its weights.

    D2 of docs/paper.md: steps are drawn in proportion to w instead of weighting uniform draws.
    π(a|s̃) is the same for any factor of w that depends on s̃ alone, so the mass that time steps
    conserve may be corrected before, and early steps be drawn more often. Twins see the plain data, and
    have one course.
    """
    extraction = config.extraction
    behaviour = np.asarray(data.behaviour, np.float64)
    behaviour /= behaviour.sum()
    shares = [behaviour] * twins
    for weighing in reversed(weighings):
        own = np.asarray(weighing.weights, np.float64)
        total = own.sum()
        _check_total(total)
        shares.insert(0, (1 - extraction.floor) * own / total + extraction.floor * behaviour)
    shown = None if courses == 1 else _courses(weighings, shares, data, courses)
    if extraction.early_oversampling:
        time = np.asarray(data.steps.time)
        shares = [oversample_early(share, time, extraction.early_oversampling) for share in shares]
    if not config.ablation.weighted_loss:
        cdfs = np.stack([cumulative_shares(share) for share in shares])
        return SampleWeights(jnp.asarray(cdfs), None, shown)
    plain = cumulative_shares(behaviour)
    relative = np.stack([share / np.maximum(behaviour, 1e-300) for share in shares])
    plainly = jnp.asarray(np.stack([plain] * len(shares)))
    return SampleWeights(plainly, jnp.asarray(relative, jnp.float32), shown)


def _courses(
    weighings: Sequence[Weighing],
    shares: Sequence[Float[np.ndarray, " steps"]],
    data: DeviceData,
    courses: int,
) -> Courses:
    """What each policy's steps show, and how likely its episodes are to begin on each course."""
    plain = np.zeros(data.steps.count, np.uint8)
    known = [plain if each.courses is None else np.asarray(each.courses, np.uint8) for each in weighings]
    known += [plain] * (len(shares) - len(known))
    first = np.asarray(data.initial)
    counts = [
        np.bincount(course[first], share[first], courses) for course, share in zip(known, shares, strict=True)
    ]
    chances = np.stack([count / count.sum() for count in counts])
    return Courses(jnp.asarray(np.stack(known)), jnp.asarray(chances, jnp.float32))


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
