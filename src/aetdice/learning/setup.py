"""From a dataset and a configuration to what training needs: members, networks and data on the device."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Int, UInt8

from aetdice.algorithms import ALGORITHMS, Algorithm
from aetdice.config import TrainingConfig, is_among
from aetdice.data import Episodes
from aetdice.data.augmentation import check_horizon
from aetdice.data.device import DeviceData
from aetdice.data.stored import StoredSteps
from aetdice.errors import InputError
from aetdice.learning.choice import Choice, choose, choose_own, some_of, with_joined, worth_trying
from aetdice.learning.evidence import Evidence
from aetdice.learning.inputs import (
    actions_of,
    check_settings,
    courses_for,
    encoder_for,
    head_for,
    held_share,
    onto_device,
    probe_of,
    set_aside,
    split,
)
from aetdice.learning.population import product, stack
from aetdice.learning.streaming import check_wanted, may_stay, streams
from aetdice.networks import Encoder, PolicyHead
from aetdice.objectives import Objective, check_objective

AETDICE = "aetdice"
"""The algorithm whose n is chosen from the data."""
WITNESSES = 100_000
"""Steps of data on disk by which policies are judged."""
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
    courses: int
    """That policies have at most."""
    training: DeviceData
    held_out: DeviceData | None
    probe: DeviceData
    returns: Float[np.ndarray, "episodes m"]
    """Of the recorded episodes."""
    evidence: Evidence
    """What the data can say of policies."""
    fingerprint: UInt8[Array, "32"]
    """Of all that the result depends on."""
    stored: StoredSteps | None = None
    """The training data where it stays on disk; `training` is then what metrics look at between chunks."""
    words: str = ""
    """Where large data is, for people."""

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
    everything = dataset
    dataset, _ = set_aside(everything, config)
    given = Choice(algorithm_for(algorithm, horizon, config), config, sweeps)
    check_settings(dataset, config)
    # Before anything is tried: what is refused is refused at once.
    members_of(dataset, objectives, given.algorithm, sweeps, learning_rate, seed)
    check_wanted(given.algorithm, config)
    choice = _with_open_settings(
        some_of(dataset) if may_stay(dataset, config) else dataset, algorithm, given, horizon
    )
    learner, config = choice.algorithm, choice.config
    choices = members_of(dataset, objectives, learner, choice.sweeps, learning_rate, seed)
    settings = _settings_of(choices)
    some = dataset if actions_of(dataset) == 0 else some_of(dataset)
    stays, words = streams(dataset, some, learner, config, held_share(config, settings))
    stored = StoredSteps(dataset, horizon, actions_of(dataset)) if stays else None
    probe = probe_of(dataset if stored is None else some, horizon, learner)
    recorded, kept = (dataset, None) if stored is not None else split(dataset, config, settings)
    shown, possible = with_joined(recorded, choice, objectives, horizon)
    choices = worth_trying(choices, shown is not recorded)
    seeds = [choice["seed"] for choice in choices]
    distinct = sorted(set(seeds))
    training = (
        onto_device(shown, horizon, learner, model=recorded, recorded=recorded.steps)
        if stored is None
        else probe
    )
    rates = [*(choice["learning_rate"] for choice in choices), *[TWIN_RATE] * len(distinct)]
    return Setup(
        name=algorithm,
        algorithm=learner,
        config=config,
        horizon=horizon,
        choices=choices,
        hypers=stack([hyper_of(choice, learner) for choice in choices]),
        seeds=jax.device_put(np.asarray(seeds, np.int32)),
        policy_seeds=jax.device_put(np.asarray([*seeds, *distinct], np.int32)),
        policy_rates=jax.device_put(np.asarray(rates, np.float32)),
        twins=[len(choices) + distinct.index(seed) for seed in seeds],
        encoder=encoder_for(
            dataset if shown is recorded else Episodes.joined([dataset, shown]),
            horizon,
            learner,
            config.network,
        ),
        head=head_for(everything if training.actions else dataset, config.network),
        courses=courses_for(dataset, learner),
        training=training,
        held_out=None if kept is None else onto_device(kept, horizon, learner, model=recorded),
        probe=probe,
        returns=dataset.returns,
        evidence=Evidence(
            dataset if stored is None else some_of(dataset, WITNESSES),
            horizon,
            training.steps.successors is not None,
            _settings_of(choices),
            dict(zip((each.name for each in objectives), possible, strict=False)),
        ),
        fingerprint=fingerprint(everything, choices, algorithm, horizon, config),
        stored=stored,
        words=words,
    )


def _settings_of(choices: Sequence[Mapping[str, Any]]) -> int:
    """How many settings each objective has, seeds aside."""
    return len(choices) // len({(choice["objective"].name, choice["seed"]) for choice in choices})


def _with_open_settings(dataset: Episodes, name: str, given: Choice, horizon: int) -> Choice:
    """What was given, with the rest chosen from the data."""
    config = given.config
    if any(given.sweeps.get(own) is not None for own in given.algorithm.sweeps):
        return given
    if name == AETDICE:
        return choose(dataset, given, horizon) if config.dual.n_step is None else given
    choice = choose_own(dataset, given, name, horizon)
    config = readable(choice.config, name)
    return choice._replace(algorithm=algorithm_for(name, horizon, config), config=config)


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


def fingerprint(dataset: Episodes, choices: Sequence[dict[str, Any]], *facts: Any) -> UInt8[Array, "32"]:
    """A digest of all that the result depends on."""
    digest = hashlib.sha256(repr(facts).encode())
    for choice in choices:
        described = {**choice, "objective": choice["objective"].name}
        digest.update(repr(sorted((name, str(value)) for name, value in described.items())).encode())
    leaves = jax.tree.leaves([choice["objective"] for choice in choices])
    for array in (*leaves, np.frombuffer(bytes.fromhex(dataset.sha256), np.uint8)):
        digest.update(np.ascontiguousarray(array).tobytes())
    return jax.device_put(np.frombuffer(digest.digest(), np.uint8))


def several(value: Any) -> list[Any]:
    """A list of values, be it of one; NumPy's numbers as Python's, which files can hold."""
    values = list(value) if isinstance(value, Sequence | np.ndarray) else [value]
    return [each.item() if isinstance(each, np.generic) else each for each in values]
