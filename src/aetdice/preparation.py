"""From a dataset and a configuration to what training needs: members, networks and data on the device."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, UInt8, UInt32

from aetdice.algorithms.cloning import lottery
from aetdice.algorithms.diagnostics import RatioReport
from aetdice.algorithms.dice import DiceHyper, DiceSetting
from aetdice.data import Episodes, accrue, augment
from aetdice.data.resident import ResidentData, resident
from aetdice.dice import FiniteHorizon
from aetdice.errors import InputError
from aetdice.networks import Categorical, Encoder, GaussianMixture, PolicyHead
from aetdice.objectives import DIVERGENCES, Identity, Objective, check_objective
from aetdice.population import product


@dataclass(frozen=True)
class TrainingConfig:
    """How to train; the same for every member of a population."""

    hidden: tuple[int, ...] = (256, 256)
    """Widths of the hidden layers of ν and of the policies."""
    batch: int = 512
    """Steps per update, in both stages."""
    dual_steps: int = 15_000
    """Updates of ν."""
    cloning_steps: int = 4_000
    """Updates of the policies."""
    first_beta: float = 0.1
    """Where β starts to fall from."""
    annealing: float = 0.5
    """The share of the dual stage during which β falls."""
    averaging: float = 0.999
    """Decay of ν's average."""
    slack_rate: float = 3e-3
    """Step of the slack towards the utilities that the ratios attain."""
    polish: bool = True
    """Solve for the last layer of ν exactly before cloning."""
    floor: float = 0.01
    """Share of cloning steps drawn from the behaviour, for states the ratios leave out."""
    divergence: Literal["chi2", "soft-chi2", "kl"] = "chi2"
    """The φ of the regulariser."""
    time: Literal["input", "heads", "augmented"] = "input"
    """How ν knows the time: as an input, by one head per step, or so with the paper's augmentation."""
    accrued: bool = True
    """Let ν and the policies see the accrued reward; needless for affine F only."""
    terminal_reward: bool = False
    """Pay F(R) - F(0) at the end of an episode instead of along the way."""
    components: int = 5
    """Gaussians in the policy mixture for continuous actions."""
    holdout: float | None = None
    """Share of episodes kept for choosing β; by default a tenth if there are several, else none."""
    precision: Literal["highest", "tensorfloat32", "bfloat16"] = "highest"
    """Of matrix products, where the device offers a choice."""
    chunk: int = 500
    """Updates between reports and checkpoints."""

    def __post_init__(self) -> None:
        positive = {"batch": self.batch, "dual_steps": self.dual_steps, "cloning_steps": self.cloning_steps}
        for name, value in {**positive, "chunk": self.chunk, "components": self.components}.items():
            if value < 1:
                raise InputError(f"{name} must be at least 1, not {value}")
        if not self.hidden or min(self.hidden) < 1:
            raise InputError(f"hidden needs at least one positive width, not {self.hidden}")
        if self.holdout is not None and not 0 <= self.holdout < 1:
            raise InputError(f"holdout is a share of the episodes below 1, not {self.holdout}")
        for name, share in {"floor": self.floor, "averaging": self.averaging}.items():
            if not 0 <= share <= 1:
                raise InputError(f"{name} is a share between 0 and 1, not {share}")
        for name, share in {"annealing": self.annealing, "slack_rate": self.slack_rate}.items():
            if not 0 < share <= 1:
                raise InputError(f"{name} is a share above 0 and at most 1, not {share}")
        if not np.isfinite(self.first_beta) or self.first_beta <= 0:
            raise InputError(f"first_beta must be positive, not {self.first_beta}")


def members_of(
    dataset: Episodes,
    objectives: Sequence[Objective],
    beta: float | Sequence[float],
    learning_rate: float | Sequence[float],
    seed: int | Sequence[int],
) -> list[dict[str, Any]]:
    """Every combination of the values, each checked; `InputError` names what is wrong."""
    choices = product(
        objective=objectives,
        beta=_several(beta),
        learning_rate=_several(learning_rate),
        seed=_several(seed),
    )
    if not choices:
        raise InputError("objective, beta, learning_rate and seed need at least one value each")
    for choice in choices:
        for name in ("beta", "learning_rate"):
            if not np.isfinite(choice[name]) or choice[name] <= 0:
                raise InputError(f"{name} must be positive, not {choice[name]}")
    shapes = [jax.tree.map(np.shape, objective) for objective in objectives]
    if any(not eqx.tree_equal(shape, shapes[0]) for shape in shapes):
        raise InputError(
            "the objectives of one population must share their form and differ in parameters only"
        )
    for objective in objectives:
        check_objective(objective, dataset.returns)
    return choices


def split(
    dataset: Episodes, horizon: int, config: TrainingConfig, betas: int
) -> tuple[ResidentData, ResidentData | None]:
    """The training part and, where β has to be chosen, the part kept for it."""
    share = config.holdout if config.holdout is not None else (0.1 if betas > 1 else 0.0)
    count = round(share * len(dataset))
    if count == 0:
        return resident(augment(dataset, Identity(), horizon)), None
    if count == len(dataset):
        raise InputError(f"a holdout of {share:g} leaves none of the {len(dataset)} episodes for training")
    order = np.random.default_rng(0).permutation(len(dataset))
    parts = (sorted(order[count:].tolist()), sorted(order[:count].tolist()))
    training, kept = (Episodes.from_list([dataset[i] for i in part], dataset.objectives) for part in parts)
    return resident(augment(training, Identity(), horizon)), resident(augment(kept, Identity(), horizon))


def encoder_for(dataset: Episodes, horizon: int, config: TrainingConfig) -> Encoder:
    frames = dataset.observations.reshape(len(dataset.observations), -1)
    discrete = np.issubdtype(frames.dtype, np.integer) and frames.min() >= 0
    spread = frames.std(axis=0)
    reach = np.abs(np.concatenate(accrue(dataset))).max(axis=0)
    return Encoder(
        sizes=tuple(int(size) for size in frames.max(axis=0) + 1) if discrete else None,
        horizon=horizon,
        use_accrued=config.accrued,
        use_time=True,
        centre=frames.mean(axis=0),
        spread=np.where(spread > 1e-6, spread, 1.0),
        accrued_range=np.maximum(np.log1p(reach), 1e-3),
    )


def head_for(dataset: Episodes, config: TrainingConfig) -> PolicyHead:
    if dataset.actions.ndim == 1 and np.issubdtype(dataset.actions.dtype, np.integer):
        if dataset.actions.min() < 0:
            raise InputError("actions must be numbered from 0")
        return Categorical(int(dataset.actions.max()) + 1)
    actions = dataset.actions.reshape(dataset.steps, -1)
    low, high = actions.min(axis=0), actions.max(axis=0)
    return GaussianMixture(low, np.maximum(high, low + 1e-6), config.components)


def setting_for(horizon: int, config: TrainingConfig) -> DiceSetting:
    return DiceSetting(
        FiniteHorizon(horizon),
        DIVERGENCES[config.divergence](),
        batch=config.batch,
        steps=config.dual_steps,
        annealing=config.annealing,
        time_augmented=config.time == "augmented",
        terminal_reward=config.terminal_reward,
    )


def hyper_for(choice: dict[str, Any], config: TrainingConfig) -> DiceHyper:
    return DiceHyper(
        choice["objective"],
        beta=choice["beta"],
        learning_rate=choice["learning_rate"],
        slack_rate=config.slack_rate,
        first_beta=config.first_beta,
        averaging=config.averaging,
    )


def fingerprint(
    dataset: Episodes, choices: Sequence[dict[str, Any]], horizon: int, config: TrainingConfig
) -> UInt8[Array, "32"]:
    """A digest of all that the result depends on."""
    digest = hashlib.sha256(repr((horizon, config)).encode())
    for choice in choices:
        described = {**choice, "objective": choice["objective"].name}
        digest.update(repr(sorted((name, str(value)) for name, value in described.items())).encode())
    leaves = jax.tree.leaves([choice["objective"] for choice in choices])
    parts = (dataset.observations, dataset.actions, dataset.rewards, dataset.lengths, dataset.terminated)
    for array in (*leaves, *parts):
        digest.update(np.ascontiguousarray(array).tobytes())
    return jnp.asarray(np.frombuffer(digest.digest(), np.uint8))


def tickets_for(ratios: RatioReport, data: ResidentData, floor: float) -> UInt32[np.ndarray, " steps"]:
    """Draw by w, each time step as often as the behaviour is there, and by the behaviour for `floor`.

    π(a|s̃) is the same for any factor of w that depends on s̃ alone, so dividing by the mass of
    the time step costs nothing and keeps every step of the horizon in the lessons.
    """
    weight, w = np.asarray(data.steps.weight, np.float64), np.asarray(ratios.ratios, np.float64)
    time = np.asarray(data.steps.time)
    behaviour, mass = np.bincount(time, weight), np.bincount(time, w * weight)
    balance = np.where(mass > 0, behaviour / np.where(mass > 0, mass, 1), 0)
    return lottery((1 - floor) * w * weight * balance[time] + floor * weight)


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, Sequence | np.ndarray) else [value]
