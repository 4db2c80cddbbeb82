"""From a dataset to what networks see of it: arrays on the device, encoders and heads."""

from dataclasses import replace

import numpy as np

from aetdice.algorithms import Algorithm
from aetdice.algorithms.episode_weighting import EpisodeWeighting
from aetdice.config import NetworkConfig, TrainingConfig
from aetdice.data import Episodes, augment
from aetdice.data.device import DeviceData, to_device, with_segments
from aetdice.data.segments import augment_segments
from aetdice.data.statistics import extremes, largest_accrued, moments
from aetdice.data.stored import STREAMED_BYTES, bytes_of, is_mapped
from aetdice.data.successors import pooled_outcomes
from aetdice.errors import InputError
from aetdice.networks import Categorical, Encoder, GaussianMixture, PolicyHead
from aetdice.objectives import Identity

PROBE_STEPS = 10_000
"""About how many steps of the dataset the metrics between chunks look at."""
REPORTED = 0.1
"""Share of a log's episodes that is kept for estimates."""
LEAST_EPISODES = 100
"""Of a log, for some to be kept."""
REPORT_SEED = 19


CONTINUOUS = {
    "network.components": "actions",
    "network.observation_fourier": "observations",
    "network.value_gain": "observations",
}
"""Settings that only continuous actions or observations have a use for."""


def check_settings(dataset: Episodes, config: TrainingConfig) -> None:
    """`InputError` if a setting was changed that data of this kind does not read."""
    discrete = {"actions": bool(actions_of(dataset)), "observations": has_discrete_observations(dataset)}
    for name in config.changed():
        if discrete.get(CONTINUOUS.get(name, "")):
            raise InputError(
                f"{name} is for continuous {CONTINUOUS[name]}; those of the dataset are discrete"
            )


def split(dataset: Episodes, config: TrainingConfig, settings: int) -> tuple[Episodes, Episodes | None]:
    """The training part and, where there are settings to choose from, the part kept for choosing."""
    share = held_share(config, settings)
    count = round(share * len(dataset))
    if count == 0:
        return dataset, None
    if count == len(dataset):
        raise InputError(f"a holdout of {share:g} leaves none of the {len(dataset)} episodes for training")
    order = np.random.default_rng(0).permutation(len(dataset))
    return dataset.select(np.sort(order[count:])), dataset.select(np.sort(order[:count]))


def held_share(config: TrainingConfig, settings: int) -> float:
    """The share of the episodes kept for choosing between so many settings."""
    holdout = config.trainer.holdout
    return holdout if holdout is not None else (0.1 if settings > 1 else 0.0)


def set_aside(dataset: Episodes, config: TrainingConfig) -> tuple[Episodes, Episodes | None]:
    """What may be learned and chosen from, and the part that is kept for estimates alone.

    By default that is a tenth of a log, which has no environment to score a policy in.
    """
    given = config.trainer.report
    kept = _is_log(dataset) and not config.trainer.streaming
    share = given if given is not None else (REPORTED if kept else 0.0)
    count = round(share * len(dataset))
    if count == 0:
        return dataset, None
    if count == len(dataset):
        raise InputError(f"a report of {share:g} leaves none of the {len(dataset)} episodes for training")
    order = np.random.default_rng(REPORT_SEED).permutation(len(dataset))
    return dataset.select(np.sort(order[count:])), dataset.select(np.sort(order[:count]))


def _is_log(dataset: Episodes) -> bool:
    """Whether the data was read from a file or table into memory, and is enough to keep some of it."""
    read = bool(dataset.notes) or "file" in (dataset.origin or {})
    large = is_mapped(dataset) and bytes_of(dataset) > STREAMED_BYTES
    return read and len(dataset) >= LEAST_EPISODES and not large


def probe_of(dataset: Episodes, horizon: int, algorithm: Algorithm) -> DeviceData:
    """A few episodes, spread over the dataset, to look at between chunks."""
    count = min(len(dataset), max(1, PROBE_STEPS * len(dataset) // dataset.steps))
    rows = np.linspace(0, len(dataset) - 1, count).astype(int)
    return onto_device(dataset.select(rows), horizon, algorithm, model=dataset)


def onto_device(
    part: Episodes,
    horizon: int,
    algorithm: Algorithm,
    model: Episodes | None = None,
    recorded: int | None = None,
) -> DeviceData:
    """Augmented steps, and as n-step transitions; the first `recorded` ones, by default all, are recorded.

    What may follow them is pooled over `model`, by default the part itself. A flow without horizon goes
    on where recording stopped, so nothing ends there.
    """
    horizon = horizon if algorithm.ends else horizon + 1
    outcomes = pooled_outcomes(part, part if model is None else model) if algorithm.pools else None
    steps = to_device(augment(part, Identity(), horizon), actions_of(part), outcomes, horizon, recorded)
    if algorithm.n_step == 1:
        return steps
    return with_segments(steps, *augment_segments(part, Identity(), algorithm.n_step, horizon))


def actions_of(dataset: Episodes) -> int:
    """How many discrete actions there are; 0 for continuous ones."""
    if dataset.actions.ndim != 1 or not np.issubdtype(dataset.actions.dtype, np.integer):
        return 0
    low, high = extremes(dataset.actions)
    if low < 0:
        raise InputError("actions must be numbered from 0")
    return int(high) + 1


def has_discrete_observations(dataset: Episodes) -> bool:
    """Whether observations are numbers 0, 1, …"""
    if not np.issubdtype(dataset.observations.dtype, np.integer):
        return False
    return bool(np.min(extremes(dataset.observations)[0]) >= 0)


def encoder_for(dataset: Episodes, horizon: int, algorithm: Algorithm, network: NetworkConfig) -> Encoder:
    discrete = has_discrete_observations(dataset)
    frames = dataset.observations.reshape(len(dataset.observations), -1)
    mean, spread = moments(frames)
    return Encoder(
        sizes=tuple(int(size) for size in extremes(frames)[1] + 1) if discrete else None,
        horizon=horizon,
        use_accrued=algorithm.sees_accrued,
        use_time=algorithm.sees_time,
        centre=mean,
        spread=np.where(spread > 1e-6, spread, 1.0),
        accrued_range=np.maximum(np.log1p(largest_accrued(dataset)), 1e-3),
        observation_fourier=0 if discrete else network.observation_fourier,
        fourier=network.fourier,
    )


def encoder_of_values(encoder: Encoder, network: NetworkConfig) -> Encoder:
    """The policies' encoder with what ν, or the values of ESR-IQL, see differently."""
    fourier = network.value_fourier or encoder.fourier
    return replace(encoder, spread=encoder.spread / network.value_gain, fourier=fourier)


def courses_for(dataset: Episodes, algorithm: Algorithm) -> int:
    """How many courses a policy may have.

    Several where whole episodes of continuous states are weighed: where two kinds of them pass near each
    other, a policy without a course would choose between them anew at every step.
    """
    if not isinstance(algorithm, EpisodeWeighting) or has_discrete_observations(dataset):
        return 1
    return algorithm.courses


def head_for(dataset: Episodes, network: NetworkConfig) -> PolicyHead:
    if count := actions_of(dataset):
        return Categorical(count)
    low, high = extremes(dataset.actions.reshape(dataset.steps, -1))
    return GaussianMixture(low, np.maximum(high, low + 1e-6), network.components)
