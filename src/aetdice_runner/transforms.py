"""Reward transforms: small frozen objects, recorded with data and policy, applied alike everywhere.

A transform maps the rewards of steps and the observations after them to new rewards. It works
on NumPy and on JAX arrays, for one step or with any leading axes, so a dataset is transformed by
the same code that serves a policy while it acts.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from aetdice_runner.errors import InputError

if TYPE_CHECKING:
    from jaxtyping import Float, Shaped


class Rewarded(Protocol):
    """A dataset, as far as constants are fitted to it."""

    @property
    def rewards(self) -> Float[np.ndarray, "steps m"]: ...


class Transform(abc.ABC):
    """New rewards from a step's rewards and the observation after it."""

    kind: ClassVar[str]
    """Its name in records."""

    @abc.abstractmethod
    def __call__(
        self, rewards: Float[Any, "*b m"], next_observations: Shaped[Any, "*b o"]
    ) -> Float[Any, "*b k"]:
        """The transformed rewards of one step, or of many."""

    def names(self, objectives: tuple[str, ...]) -> tuple[str, ...]:
        """What the transformed objectives are called."""
        return objectives

    def record(self) -> dict[str, Any]:
        """The transform as JSON; `transform_from` reads it."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {"kind": self.kind, **values}


@dataclass(frozen=True)
class MinMax(Transform):
    """r_i ↦ c_i (r_i - low_i) / (high_i - low_i).

    With constants from one reference dataset, since those of the data at hand drift with its
    size. It adds the constant -c_i low_i / (high_i - low_i) per step survived: where episodes
    end early this changes the objective, and `Scaling` does not.
    """

    kind: ClassVar[str] = "min-max"
    low: tuple[float, ...]
    high: tuple[float, ...]
    scale: tuple[float, ...]

    def __post_init__(self) -> None:
        _freeze(self, "low", "high", "scale")
        if not len(self.low) == len(self.high) == len(self.scale):
            raise InputError("min-max needs as many highs and scales as lows")
        for low, high in zip(self.low, self.high, strict=True):
            if not high > low:
                raise InputError(f"min-max needs low below high for every objective, not {low} and {high}")

    @classmethod
    def fit(cls, episodes: Rewarded, scale: Sequence[float] | None = None) -> MinMax:
        """The smallest and largest reward of a reference dataset, per objective."""
        low, high = episodes.rewards.min(axis=0), episodes.rewards.max(axis=0)
        scales = [1.0] * len(low) if scale is None else scale
        if not isinstance(scales, Sequence | np.ndarray) or len(scales) != len(low):
            raise InputError(f"scale needs {len(low)} numbers, one per objective, not {scale!r}")
        return cls(tuple(low.tolist()), tuple(high.tolist()), tuple(scales))

    def __call__(
        self, rewards: Float[Any, "*b m"], next_observations: Shaped[Any, "*b o"]
    ) -> Float[Any, "*b k"]:
        del next_observations
        low, high, scale = (_like(rewards, values) for values in (self.low, self.high, self.scale))
        return scale * (rewards - low) / (high - low)


@dataclass(frozen=True)
class Scaling(Transform):
    """r_i ↦ factor_i r_i: no shift, so an episode's length does not matter."""

    kind: ClassVar[str] = "scaling"
    factors: tuple[float, ...]

    def __post_init__(self) -> None:
        _freeze(self, "factors")
        if not all(factor > 0 for factor in self.factors):
            raise InputError(f"factors must be positive, not {', '.join(map(str, self.factors))}")

    @classmethod
    def fit(cls, episodes: Rewarded, scale: Sequence[float] | None = None) -> Scaling:
        """c_i / (high_i - low_i), the factors of `MinMax` without its shift."""
        fitted = MinMax.fit(episodes, scale)
        spans = zip(fitted.scale, fitted.low, fitted.high, strict=True)
        return cls(tuple(c / (high - low) for c, low, high in spans))

    def __call__(
        self, rewards: Float[Any, "*b m"], next_observations: Shaped[Any, "*b o"]
    ) -> Float[Any, "*b k"]:
        del next_observations
        return rewards * _like(rewards, self.factors)


@dataclass(frozen=True)
class SpeedAndEffort(Transform):
    """(r_speed, r_energy) ↦ (r_speed, 5 - r_energy): the second is ‖a‖², the cost of Cobb-Douglas."""

    kind: ClassVar[str] = "speed-and-effort"
    rest: float = 5.0
    """The energy reward of a step without action."""

    def __post_init__(self) -> None:
        _freeze(self, "rest")

    def __call__(
        self, rewards: Float[Any, "*b m"], next_observations: Shaped[Any, "*b o"]
    ) -> Float[Any, "*b k"]:
        del next_observations
        speed, energy = _columns(rewards, 2, self.kind)
        return _namespace(rewards).stack([speed, self.rest - energy], axis=-1)

    def names(self, objectives: tuple[str, ...]) -> tuple[str, ...]:
        return (objectives[0], "effort")


@dataclass(frozen=True)
class WithoutBonus(Transform):
    """r_i ↦ r_i - bonus_i: with (1, 0), speed becomes distance and standing still earns nothing."""

    kind: ClassVar[str] = "without-bonus"
    bonus: tuple[float, ...]

    def __post_init__(self) -> None:
        _freeze(self, "bonus")

    def __call__(
        self, rewards: Float[Any, "*b m"], next_observations: Shaped[Any, "*b o"]
    ) -> Float[Any, "*b k"]:
        del next_observations
        return rewards - _like(rewards, self.bonus)


@dataclass(frozen=True)
class Safety(Transform):
    """Append (1 - 2 ((h - 1.4)/.6)²) + (1 - 2 angle²) of the observation after the step.

    At most 2, reached upright at the height 1.4. The entries are Walker2d's.
    """

    kind: ClassVar[str] = "safety"
    height: float = 1.4
    spread: float = 0.6
    height_entry: int = 0
    angle_entry: int = 1

    def __post_init__(self) -> None:
        _freeze(self, "height", "spread")
        if not self.spread > 0:
            raise InputError(f"the spread of heights must be positive, not {self.spread}")
        for entry in (self.height_entry, self.angle_entry):
            if type(entry) is not int or entry < 0:
                raise InputError(f"an entry of the observation is counted from 0, not {entry!r}")

    def __call__(
        self, rewards: Float[Any, "*b m"], next_observations: Shaped[Any, "*b o"]
    ) -> Float[Any, "*b k"]:
        height = next_observations[..., self.height_entry].astype(rewards.dtype)
        angle = next_observations[..., self.angle_entry].astype(rewards.dtype)
        upright = 1 - 2 * angle**2
        safety = 1 - 2 * ((height - self.height) / self.spread) ** 2 + upright
        return _namespace(rewards).concatenate([rewards, safety[..., None]], axis=-1)

    def names(self, objectives: tuple[str, ...]) -> tuple[str, ...]:
        return (*objectives, "safety")


@dataclass(frozen=True)
class Chain(Transform):
    """One transform after the other; without any, the rewards themselves."""

    kind: ClassVar[str] = "chain"
    transforms: tuple[Transform, ...] = ()

    def __call__(
        self, rewards: Float[Any, "*b m"], next_observations: Shaped[Any, "*b o"]
    ) -> Float[Any, "*b k"]:
        for transform in self.transforms:
            rewards = transform(rewards, next_observations)
        return rewards

    def names(self, objectives: tuple[str, ...]) -> tuple[str, ...]:
        for transform in self.transforms:
            objectives = transform.names(objectives)
        return objectives

    def record(self) -> dict[str, Any]:
        return {"kind": self.kind, "transforms": [transform.record() for transform in self.transforms]}


TRANSFORMS: dict[str, type[Transform]] = {
    kind.kind: kind for kind in (MinMax, Scaling, SpeedAndEffort, WithoutBonus, Safety, Chain)
}
"""Every transform by its name in records; to be listed here is to be tested."""


def transform_from(record: Mapping[str, Any]) -> Transform:
    """The transform of a record."""
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in record.items()}
    kind = values.pop("kind", None)
    if not isinstance(kind, str) or kind not in TRANSFORMS:
        raise InputError(f"unknown transform {kind!r}; known: {', '.join(TRANSFORMS)}")
    try:
        if kind == Chain.kind:
            return Chain(tuple(transform_from(each) for each in values["transforms"]))
        return TRANSFORMS[kind](**values)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"the record of transform {kind!r} is not one: {error}") from error


def _freeze(transform: Transform, *names: str) -> None:
    """Finite floats, so that a record reads back as the same object."""
    for name in names:
        value = getattr(transform, name)
        try:
            frozen = float(value) if np.ndim(value) == 0 else tuple(float(each) for each in value)
        except (TypeError, ValueError) as error:
            raise InputError(f"{name} of {transform.kind} must be numbers, not {value!r}") from error
        if not np.all(np.isfinite(frozen)):
            raise InputError(f"{name} of {transform.kind} must be finite, not {value}")
        object.__setattr__(transform, name, frozen)


def _namespace(array: Any) -> Any:
    return array.__array_namespace__()


def _like(rewards: Any, values: tuple[float, ...]) -> Any:
    """Constants in the rewards' own kind of array and precision, one per objective."""
    if rewards.shape[-1] != len(values):
        raise InputError(
            f"the transform has {len(values)} constants, but there are {rewards.shape[-1]} objectives"
        )
    constants = _namespace(rewards).asarray(values, dtype=rewards.dtype)
    return constants.reshape((1,) * (rewards.ndim - 1) + constants.shape)


def _columns(rewards: Any, count: int, kind: str) -> list[Any]:
    if rewards.shape[-1] != count:
        raise InputError(f"{kind} needs {count} objectives, not {rewards.shape[-1]}")
    return [rewards[..., i] for i in range(count)]
