"""From a dataset and a configuration to what training needs: members, networks and data on the device."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt8

from aetdice.algorithms import ALGORITHMS, Algorithm
from aetdice.config import NetworkConfig, TrainingConfig, is_among
from aetdice.data import Episodes, accrue, augment
from aetdice.data.augmentation import check_horizon
from aetdice.data.device import DeviceData, to_device, with_segments
from aetdice.data.segments import augment_segments
from aetdice.data.successors import pooled_outcomes
from aetdice.errors import InputError
from aetdice.evaluation.recorded_model import RecordedModel
from aetdice.learning.choice import Choice, choose, with_joined
from aetdice.learning.population import product, stack
from aetdice.networks import Categorical, Encoder, GaussianMixture, PolicyHead
from aetdice.objectives import Identity, Objective, check_objective

PROBE_STEPS = 10_000
"""About how many steps of the dataset the metrics between chunks look at."""
AETDICE = "aetdice"
"""The algorithm whose n is chosen from the data."""
TWIN_RATE = 1e-3
"""The twins' learning rate, whatever the members'."""


Values = float | Sequence[float] | Float[np.ndarray, "_"]
"""One value, or several: a sweep."""
Seeds = int | Sequence[int] | Int[np.ndarray, "_"]


class Setup(NamedTuple):
    """All who are trained together, on what, and how.

    A member's *twin* is plain behaviour cloning with the same network, data and seed: what a policy
    has to beat. Members of one seed share it.
    """

    name: str
    """Of the algorithm."""
    algorithm: Algorithm
    config: TrainingConfig
    horizon: int
    choices: list[dict[str, Any]]
    """What distinguishes each member: its objective, hyper-parameters and seed."""
    hypers: Any
    seeds: Int[Array, " members"]
    policy_seeds: Int[Array, " policies"]
    """Of the members' policies, then of the twins."""
    policy_rates: Float[Array, " policies"]
    twins: list[int]
    """Which policy is each member's twin."""
    encoder: Encoder
    head: PolicyHead
    training: DeviceData
    held_out: DeviceData | None
    probe: DeviceData
    returns: Float[np.ndarray, "episodes m"]
    """Of the recorded episodes."""
    model: RecordedModel | None
    """Where transitions are stochastic and outcomes pooled: what policies are played in."""
    fingerprint: UInt8[Array, "32"]
    """Of all that the result depends on."""

    @property
    def twin_count(self) -> int:
        return self.policy_seeds.shape[0] - len(self.twins)


def set_up(
    dataset: Episodes,
    objectives: Sequence[Objective],
    *,
    algorithm: str,
    horizon: int | None,
    sweeps: Mapping[str, Values | None],
    learning_rate: Values,
    seed: Seeds,
    config: TrainingConfig,
) -> Setup:
    """Everything that training needs; `InputError` names whatever is wrong, before anything is written."""
    horizon = int(dataset.lengths.max()) if horizon is None else horizon
    check_horizon(dataset, horizon)
    choice = Choice(algorithm_for(algorithm, horizon, config), config, sweeps)
    check_settings(dataset, config)
    if algorithm == AETDICE and config.dual.n_step is None and sweeps.get("beta") is None:
        choice = choose(dataset, choice, horizon)
    learner, config = choice.algorithm, choice.config
    choices = members_of(dataset, objectives, learner, choice.sweeps, learning_rate, seed)
    seeds = [choice["seed"] for choice in choices]
    distinct = sorted(set(seeds))
    settings = len(choices) // (len({choice["objective"].name for choice in choices}) * len(distinct))
    recorded, kept = split(dataset, config, settings)
    shown = with_joined(recorded, choice, objectives, horizon)
    training = onto_device(shown, horizon, learner, model=recorded, recorded=recorded.steps)
    rates = [*(choice["learning_rate"] for choice in choices), *[TWIN_RATE] * len(distinct)]
    return Setup(
        name=algorithm,
        algorithm=learner,
        config=config,
        horizon=horizon,
        choices=choices,
        hypers=stack([hyper_of(choice, learner) for choice in choices]),
        seeds=jnp.asarray(seeds, jnp.int32),
        policy_seeds=jnp.asarray([*seeds, *distinct], jnp.int32),
        policy_rates=jnp.asarray(rates, jnp.float32),
        twins=[len(choices) + distinct.index(seed) for seed in seeds],
        encoder=encoder_for(
            dataset if shown is recorded else Episodes.joined([dataset, shown]),
            horizon,
            learner,
            config.network,
        ),
        head=head_for(dataset, config.network),
        training=training,
        held_out=None if kept is None else onto_device(kept, horizon, learner, model=recorded),
        probe=probe_of(dataset, horizon, learner),
        returns=dataset.returns,
        model=None if training.steps.successors is None else RecordedModel(dataset, horizon),
        fingerprint=fingerprint(dataset, choices, algorithm, horizon, config),
    )


def algorithm_for(name: str, horizon: int, config: TrainingConfig) -> Algorithm:
    """The algorithm of a name; `InputError` if it does not read a setting that was changed."""
    if name not in ALGORITHMS:
        raise InputError(f"unknown algorithm {name!r}; known algorithms: {', '.join(ALGORITHMS)}")
    algorithm = ALGORITHMS[name](horizon, config)
    unread = [setting for setting in config.changed() if is_among(setting, algorithm.ignores)]
    if unread:
        readers = [
            other
            for other, make in ALGORITHMS.items()
            if not is_among(unread[0], make(horizon, TrainingConfig()).ignores)
        ]
        raise InputError(f"{name} does not read {unread[0]}; it belongs to {', '.join(readers)}")
    return algorithm


def readable(config: TrainingConfig, algorithm: str) -> TrainingConfig:
    """One configuration for several algorithms: what this one does not read is put at its default."""
    return config.without(ALGORITHMS[algorithm](1, config).ignores)


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


def members_of(
    dataset: Episodes,
    objectives: Sequence[Objective],
    algorithm: Algorithm,
    sweeps: Mapping[str, Values | None],
    learning_rate: Values,
    seed: Seeds,
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


def split(dataset: Episodes, config: TrainingConfig, settings: int) -> tuple[Episodes, Episodes | None]:
    """The training part and, where there are settings to choose from, the part kept for choosing."""
    holdout = config.trainer.holdout
    share = holdout if holdout is not None else (0.1 if settings > 1 else 0.0)
    count = round(share * len(dataset))
    if count == 0:
        return dataset, None
    if count == len(dataset):
        raise InputError(f"a holdout of {share:g} leaves none of the {len(dataset)} episodes for training")
    order = np.random.default_rng(0).permutation(len(dataset))
    return dataset.select(np.sort(order[count:])), dataset.select(np.sort(order[:count]))


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
    if dataset.actions.min() < 0:
        raise InputError("actions must be numbered from 0")
    return int(dataset.actions.max()) + 1


def has_discrete_observations(dataset: Episodes) -> bool:
    """Whether observations are numbers 0, 1, …"""
    return np.issubdtype(dataset.observations.dtype, np.integer) and bool(dataset.observations.min() >= 0)


def encoder_for(dataset: Episodes, horizon: int, algorithm: Algorithm, network: NetworkConfig) -> Encoder:
    frames = dataset.observations.reshape(len(dataset.observations), -1)
    discrete = has_discrete_observations(dataset)
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
        observation_fourier=0 if discrete else network.observation_fourier,
        fourier=network.fourier,
    )


def encoder_of_values(encoder: Encoder, network: NetworkConfig) -> Encoder:
    """The policies' encoder with what ν, or the values of ESR-IQL, see differently."""
    fourier = network.value_fourier or encoder.fourier
    return replace(encoder, spread=encoder.spread / network.value_gain, fourier=fourier)


def head_for(dataset: Episodes, network: NetworkConfig) -> PolicyHead:
    if count := actions_of(dataset):
        return Categorical(count)
    actions = dataset.actions.reshape(dataset.steps, -1)
    low, high = actions.min(axis=0), actions.max(axis=0)
    return GaussianMixture(low, np.maximum(high, low + 1e-6), network.components)


def fingerprint(dataset: Episodes, choices: Sequence[dict[str, Any]], *facts: Any) -> UInt8[Array, "32"]:
    """A digest of all that the result depends on."""
    digest = hashlib.sha256(repr(facts).encode())
    for choice in choices:
        described = {**choice, "objective": choice["objective"].name}
        digest.update(repr(sorted((name, str(value)) for name, value in described.items())).encode())
    leaves = jax.tree.leaves([choice["objective"] for choice in choices])
    for array in (*leaves, np.frombuffer(bytes.fromhex(dataset.sha256), np.uint8)):
        digest.update(np.ascontiguousarray(array).tobytes())
    return jnp.asarray(np.frombuffer(digest.digest(), np.uint8))


def several(value: Any) -> list[Any]:
    """A list of values, be it of one; NumPy's numbers as Python's, which files can hold."""
    values = list(value) if isinstance(value, Sequence | np.ndarray) else [value]
    return [each.item() if isinstance(each, np.generic) else each for each in values]
