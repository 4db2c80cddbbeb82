"""From a dataset and a configuration to what training needs: members, networks and data on the device."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt8

from aetdice.algorithms.algorithm import Algorithm
from aetdice.algorithms.cloning import Lessons, lottery
from aetdice.algorithms.learners import ALGORITHMS, Dice
from aetdice.config import TrainingConfig
from aetdice.data import Episodes, accrue, augment
from aetdice.data.resident import ResidentData, resident
from aetdice.dice import FiniteHorizon
from aetdice.errors import InputError
from aetdice.networks import Categorical, Encoder, GaussianMixture, PolicyHead
from aetdice.objectives import Identity, Objective, check_objective
from aetdice.population import product

PROBE_STEPS = 10_000
"""About how many steps of the training set are looked at between chunks."""
FIRST_PART = 1 / 25
"""Of the longest episode: early lessons fade as exp(-t / so much of it)."""


def algorithm_for(name: str, horizon: int, config: TrainingConfig) -> Algorithm:
    if name not in ALGORITHMS:
        raise InputError(f"unknown algorithm {name!r}; known algorithms: {', '.join(ALGORITHMS)}")
    return ALGORITHMS[name](horizon, config)


def members_of(
    dataset: Episodes,
    objectives: Sequence[Objective],
    algorithm: Algorithm,
    sweeps: Mapping[str, float | Sequence[float] | None],
    learning_rate: float | Sequence[float],
    seed: int | Sequence[int],
) -> list[dict[str, Any]]:
    """Every combination of the values, each checked; `InputError` names what is wrong."""
    for name, value in sweeps.items():
        if value is not None and name not in algorithm.sweeps:
            takes = ", ".join(algorithm.sweeps) or "no hyper-parameters of its own"
            raise InputError(f"this algorithm has no {name}; it takes {takes}")
    own = {
        name: several(default if sweeps.get(name) is None else sweeps[name])
        for name, default in algorithm.sweeps.items()
    }
    choices = product(objective=objectives, **own, learning_rate=several(learning_rate), seed=several(seed))
    if not choices:
        names = ", ".join(["objective", *own, "learning_rate"])
        raise InputError(f"{names} and seed need at least one value each")
    for choice in choices:
        if not np.isfinite(choice["learning_rate"]) or choice["learning_rate"] <= 0:
            raise InputError(f"learning_rate must be positive, not {choice['learning_rate']}")
        hyper_of(choice, algorithm)
    shapes = [jax.tree.map(np.shape, objective) for objective in objectives]
    if any(not eqx.tree_equal(shape, shapes[0]) for shape in shapes):
        raise InputError(
            "the objectives of one population must share their form and differ in parameters only"
        )
    for objective in objectives:
        check_objective(objective, dataset.returns)
        algorithm.check(objective, len(dataset.objectives))
    return choices


def hyper_of(choice: Mapping[str, Any], algorithm: Algorithm) -> Any:
    own = {name: choice[name] for name in algorithm.sweeps}
    return algorithm.hyper(choice["objective"], choice["learning_rate"], **own)


def split(
    dataset: Episodes, horizon: int, config: TrainingConfig, algorithm: Algorithm, settings: int
) -> tuple[ResidentData, ResidentData | None]:
    """The training part and, where there are settings to choose from, the part kept for choosing."""
    share = config.holdout if config.holdout is not None else (0.1 if settings > 1 else 0.0)
    count = round(share * len(dataset))
    if count == 0:
        return onto_device(dataset, horizon, algorithm), None
    if count == len(dataset):
        raise InputError(f"a holdout of {share:g} leaves none of the {len(dataset)} episodes for training")
    order = np.random.default_rng(0).permutation(len(dataset))
    training, kept = (_part(dataset, part) for part in (order[count:], order[:count]))
    return onto_device(training, horizon, algorithm), onto_device(kept, horizon, algorithm)


def probe_of(dataset: Episodes, horizon: int, algorithm: Algorithm) -> ResidentData:
    """A few episodes, spread over the dataset, to look at between chunks."""
    count = min(len(dataset), max(1, PROBE_STEPS * len(dataset) // dataset.steps))
    rows = np.linspace(0, len(dataset) - 1, count).astype(int)
    return onto_device(_part(dataset, rows), horizon, algorithm)


def _part(dataset: Episodes, rows: Any) -> Episodes:
    return Episodes.from_list([dataset[i] for i in sorted(rows.tolist())], dataset.objectives)


def onto_device(dataset: Episodes, horizon: int, algorithm: Algorithm) -> ResidentData:
    """Augmented steps; a flow without horizon goes on where recording stopped, so nothing ends there."""
    endless = isinstance(algorithm, Dice) and not isinstance(algorithm.setting.flow, FiniteHorizon)
    steps = augment(dataset, Identity(), horizon + 1 if endless else horizon)
    return resident(steps, actions_of(dataset))


def actions_of(dataset: Episodes) -> int:
    """How many discrete actions there are; 0 for continuous ones."""
    if dataset.actions.ndim != 1 or not np.issubdtype(dataset.actions.dtype, np.integer):
        return 0
    if dataset.actions.min() < 0:
        raise InputError("actions must be numbered from 0")
    return int(dataset.actions.max()) + 1


def encoder_for(dataset: Episodes, horizon: int, algorithm: Algorithm, config: TrainingConfig) -> Encoder:
    frames = dataset.observations.reshape(len(dataset.observations), -1)
    discrete = np.issubdtype(frames.dtype, np.integer) and frames.min() >= 0
    spread = frames.std(axis=0)
    reach = np.abs(np.concatenate(accrue(dataset))).max(axis=0)
    return Encoder(
        sizes=tuple(int(size) for size in frames.max(axis=0) + 1) if discrete else None,
        horizon=horizon,
        use_accrued=algorithm.sees_accrued,
        use_time=algorithm.sees_time,
        centre=frames.mean(axis=0),
        spread=np.where(spread > 1e-6, spread, 1.0),
        accrued_range=np.maximum(np.log1p(reach), 1e-3),
        waves=0 if discrete else config.waves,
        frequencies=config.frequencies,
    )


def encoder_of_values(encoder: Encoder, config: TrainingConfig) -> Encoder:
    """The policies' encoder with what ν, or the values of ESR-IQL, see differently."""
    frequencies = config.value_frequencies or encoder.frequencies
    return replace(encoder, spread=encoder.spread / config.value_gain, frequencies=frequencies)


def head_for(dataset: Episodes, config: TrainingConfig) -> PolicyHead:
    if count := actions_of(dataset):
        return Categorical(count)
    actions = dataset.actions.reshape(dataset.steps, -1)
    low, high = actions.min(axis=0), actions.max(axis=0)
    return GaussianMixture(low, np.maximum(high, low + 1e-6), config.components)


def lessons_for(
    lessons: Sequence[Float[Array, " steps"]], twins: int, data: ResidentData, config: TrainingConfig
) -> Lessons:
    """What every policy is shown: a share `floor` as the behaviour has it, the rest by its lessons.

    π(a|s̃) is the same for any factor of w that depends on s̃ alone, so the mass that time steps
    conserve may be corrected before, and first steps be shown more often. Twins see all of the data alike.
    """
    behaviour = np.asarray(data.steps.weight, np.float64)
    behaviour /= behaviour.sum()
    shares = [behaviour] * twins
    for mass in reversed(lessons):
        own = np.asarray(mass, np.float64)
        total = own.sum()
        if not np.isfinite(total) or total <= 0:
            raise InputError("every ratio is zero: no step is worth cloning; use a larger beta")
        shares.insert(0, (1 - config.floor) * own / total + config.floor * behaviour)
    if config.early:
        shares = [sooner(share, np.asarray(data.steps.time), config.early) for share in shares]
    if config.extraction == "drawn":
        return Lessons(jnp.asarray(np.stack([lottery(share) for share in shares])), None)
    plain = lottery(behaviour)
    relative = np.stack([share / np.maximum(behaviour, 1e-300) for share in shares])
    return Lessons(jnp.asarray(np.stack([plain] * len(shares))), jnp.asarray(relative, jnp.float32))


def sooner(
    share: Float[np.ndarray, " steps"], time: Int[np.ndarray, " steps"], early: float
) -> Float[np.ndarray, " steps"]:
    """Lessons of which a share `early` is about first steps."""
    first = share * np.exp(-time / (FIRST_PART * (time.max() + 1)))
    return (1 - early) * share + early * first / first.sum()


def fingerprint(dataset: Episodes, choices: Sequence[dict[str, Any]], *facts: Any) -> UInt8[Array, "32"]:
    """A digest of all that the result depends on."""
    digest = hashlib.sha256(repr(facts).encode())
    for choice in choices:
        described = {**choice, "objective": choice["objective"].name}
        digest.update(repr(sorted((name, str(value)) for name, value in described.items())).encode())
    leaves = jax.tree.leaves([choice["objective"] for choice in choices])
    parts = (dataset.observations, dataset.actions, dataset.rewards, dataset.lengths, dataset.terminated)
    for array in (*leaves, *parts):
        digest.update(np.ascontiguousarray(array).tobytes())
    return jnp.asarray(np.frombuffer(digest.digest(), np.uint8))


def several(value: Any) -> list[Any]:
    """A list of values, be it of one."""
    return list(value) if isinstance(value, Sequence | np.ndarray) else [value]
