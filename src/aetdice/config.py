"""How to train, by concern: every setting stands here once, with its default and a sentence."""

import dataclasses
import difflib
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from aetdice.errors import InputError


@dataclass(frozen=True)
class NetworkConfig:
    """The networks, and the features they see of an augmented state."""

    hidden: tuple[int, ...] = (128, 128)
    """Widths of the hidden layers, of ν (or Q and V) and of the policies."""
    observation_fourier: int = 0
    """Frequencies of the Fourier features of continuous observations, beside their values."""
    fourier: int = 8
    """Frequencies of the Fourier features of accrued reward and time; 3 was better in the mazes."""
    value_fourier: int | None = None
    """The same for ν (or Q and V), if another number than the policies have."""
    value_gain: float = 1.0
    """Factor of continuous observations as ν (or Q and V) see them: small where gaits swing them."""
    components: int = 5
    """Gaussians in the policy mixture for continuous actions."""

    def __post_init__(self) -> None:
        if not self.hidden or min(self.hidden) < 1:
            raise InputError(f"network.hidden needs at least one positive width, not {self.hidden}")
        _require(self, "network", ("fourier", "value_fourier", "components"), AT_LEAST_ONE)
        _require(self, "network", ("observation_fourier",), NOT_NEGATIVE)
        _require(self, "network", ("value_gain",), POSITIVE)


@dataclass(frozen=True)
class DualConfig:
    """The dual stage of AETDICE, OptiDICE and FairDICE: ν and the slack."""

    steps: int = 12_000
    """Updates of ν."""
    batch: int = 256
    """Transitions per update."""
    starts: int = 16
    """Initial states per update."""
    window: int = 16
    """Transitions are drawn in runs of so many consecutive ones, which share evaluations of ν."""
    first_beta: float = 0.1
    """Where β starts to fall from."""
    annealing: float = 0.5
    """The share of the stage during which β falls."""
    averaging: float = 0.999
    """Decay of the average of ν's weights."""
    slack_rate: float = 3e-3
    """Step of the slack towards the utilities that the ratios attain."""
    refit: Literal["constants", "layer", "none"] = "constants"
    """Exact refit at the end: ν's constants and scale, or its last layer, or nothing."""
    n_step: int = 1
    """Ratios come from residuals over so many steps; more than 1 where episodes never meet (AETDICE)."""
    divergence: Literal["chi2", "soft-chi2", "kl"] = "chi2"
    """The φ of the regulariser."""
    gamma: float = 0.99
    """Discount of the infinite-horizon flow (OptiDICE, FairDICE)."""
    terminal_reward: bool = False
    """Pay F(R) - F(0) at the end of an episode instead of r̃ along the way (AETDICE)."""

    def __post_init__(self) -> None:
        _require(self, "dual", ("steps", "batch", "starts", "window", "n_step"), AT_LEAST_ONE)
        _require(self, "dual", ("averaging",), SHARE)
        _require(self, "dual", ("annealing", "slack_rate"), POSITIVE_SHARE)
        _require(self, "dual", ("gamma",), BELOW_ONE)
        _require(self, "dual", ("first_beta",), POSITIVE)


@dataclass(frozen=True)
class IqlConfig:
    """The value stage of ESR-IQL."""

    steps: int = 12_000
    """Updates of Q and V."""
    batch: int = 256
    """Transitions per update."""
    critic_averaging: float = 0.995
    """Decay of the slow average of the critics: the smaller, the sooner values reach the start."""

    def __post_init__(self) -> None:
        _require(self, "iql", ("steps", "batch"), AT_LEAST_ONE)
        _require(self, "iql", ("critic_averaging",), SHARE)


@dataclass(frozen=True)
class ExtractionConfig:
    """Policy extraction: weighted cloning, of the policies and of their twins."""

    steps: int = 6_000
    """Updates of the policies."""
    batch: int = 256
    """Transitions per update."""
    floor: float = 0.0
    """Share of the samples that follow the behaviour, for states that the weights leave out."""
    warm_up: float = 0.0
    """Share of the updates, the first ones, in which a policy learns from unweighted data."""
    early_oversampling: float = 0.0
    """Share of the samples that are early steps of episodes, where their course is chosen."""
    dropout: float = 0.0
    """Share of a policy's hidden units left out of each update, against learning steps by heart."""

    def __post_init__(self) -> None:
        _require(self, "extraction", ("steps", "batch"), AT_LEAST_ONE)
        _require(self, "extraction", ("floor", "warm_up", "early_oversampling"), SHARE)
        _require(self, "extraction", ("dropout",), BELOW_ONE)


@dataclass(frozen=True)
class TrainerConfig:
    """What is about the run and not about the method."""

    holdout: float | None = None
    """Share of episodes kept for choosing a setting; by default a tenth if there are several, else none."""
    precision: Literal["highest", "tensorfloat32", "bfloat16"] = "highest"
    """Of products in updates, where a device offers a choice; lower ones are too coarse for β below 1e-3."""
    chunk: int = 500
    """Updates between metrics and checkpoints."""

    def __post_init__(self) -> None:
        if self.holdout is not None and not 0 <= self.holdout < 1:
            raise InputError(f"trainer.holdout is a share of the episodes below 1, not {self.holdout}")
        _require(self, "trainer", ("chunk",), AT_LEAST_ONE)


@dataclass(frozen=True)
class AblationConfig:
    """Variants that experiments/ablation.py compares with; not meant for use."""

    time: Literal["input", "heads", "augmented"] = "input"
    """How ν knows the time: as an input, by one head per step, or so with the paper's augmentation."""
    offsets: bool = True
    """Give ν a free constant per time step."""
    accrued: bool = True
    """Let the networks see the accrued reward; needless for affine F only."""
    weighted_loss: bool = False
    """Weigh the cloning loss instead of drawing samples in proportion to their weights."""


@dataclass(frozen=True)
class TrainingConfig:
    """How to train; the same for every member of a population."""

    network: NetworkConfig = field(default_factory=NetworkConfig)
    dual: DualConfig = field(default_factory=DualConfig)
    iql: IqlConfig = field(default_factory=IqlConfig)
    extraction: ExtractionConfig = field(default_factory=ExtractionConfig)
    trainer: TrainerConfig = field(default_factory=TrainerConfig)
    ablation: AblationConfig = field(default_factory=AblationConfig)

    def changed(self) -> dict[str, Any]:
        """The settings that are not at their defaults, by dotted name."""
        defaults = TrainingConfig()
        return {
            f"{group.name}.{setting.name}": value
            for group in fields(self)
            for setting in fields(getattr(self, group.name))
            if (value := getattr(getattr(self, group.name), setting.name))
            != getattr(getattr(defaults, group.name), setting.name)
        }

    def without(self, names: tuple[str, ...]) -> "TrainingConfig":
        """These settings, dotted names or whole groups, back at their defaults."""
        reset = {name: value for name, value in self.changed().items() if not is_among(name, names)}
        return TrainingConfig().adapted(reset)

    def adapted(self, settings: Mapping[str, Any]) -> "TrainingConfig":
        """Some settings changed, by dotted name: `config.adapted({"dual.annealing": 0.3})`."""
        groups: dict[str, dict[str, Any]] = {}
        for name, value in settings.items():
            group, setting, kind = _find(name)
            groups.setdefault(group, {})[setting] = _fitted(name, value, kind)
        changes = {name: dataclasses.replace(getattr(self, name), **group) for name, group in groups.items()}
        return dataclasses.replace(self, **changes)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "TrainingConfig":
        """The configuration of a nested mapping, as a JSON or TOML file has it."""
        known = {group.name for group in fields(cls)}
        for name, group in record.items():
            if name not in known or not isinstance(group, Mapping):
                raise InputError(f"settings come in the groups {', '.join(sorted(known))}; {name!r} is none")
        flat = {f"{group}.{name}": value for group, each in record.items() for name, value in each.items()}
        return cls().adapted(flat)


def is_among(name: str, names: tuple[str, ...]) -> bool:
    """Whether a dotted name is listed, by itself or with its group."""
    return name in names or name.split(".")[0] in names


def parse_setting(text: str) -> tuple[str, Any]:
    """`dual.annealing=0.3` as a name and a value of the right type."""
    name, sign, value = text.partition("=")
    if not sign:
        raise InputError(f"a setting is written as name=value, for example dual.annealing=0.3; not {text!r}")
    kind = _find(name.strip())[2]
    return name.strip(), _parsed(value.strip(), kind)


def _find(name: str) -> tuple[str, str, Any]:
    """Group, setting and type of a dotted name."""
    kinds = {
        f"{group.name}.{setting}": kind
        for group in fields(TrainingConfig)
        for setting, kind in get_type_hints(group.default_factory).items()
    }
    if name not in kinds:
        near = difflib.get_close_matches(name, kinds, 3, 0.5)
        near += [known for known in kinds if known.endswith(f".{name}") and known not in near]
        hint = f"; did you mean {' or '.join(near)}?" if near else f"; known: {', '.join(kinds)}"
        raise InputError(f"there is no setting {name!r}{hint}")
    group, setting = name.split(".")
    return group, setting, kinds[name]


def _options(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def _parsed(text: str, kind: Any) -> Any:
    """Text as the type of a setting; what does not fit stays text, for `_fitted` to refuse."""
    readers: dict[Any, Callable[[str], Any]] = {
        int: int,
        float: float,
        bool: lambda word: {"true": True, "false": False}.get(word.lower(), word),
        types.NoneType: lambda word: None if word.lower() == "none" else int("no"),
    }
    for option in _options(kind):
        if get_origin(option) is tuple:
            parts = text.strip("()[]").replace(",", " ").split()
            return tuple(_parsed(part, get_args(option)[0]) for part in parts)
        if option in readers:
            try:
                return readers[option](text)
            except ValueError:
                continue
    return text


def _fitted(name: str, value: Any, kind: Any) -> Any:
    """The value in the type of its setting; `InputError` names what does not fit."""
    for option in _options(kind):
        if get_origin(option) is Literal and value in get_args(option):
            return value
        if get_origin(option) is tuple and isinstance(value, list | tuple):
            return tuple(_fitted(name, entry, get_args(option)[0]) for entry in value)
        if option is types.NoneType and value is None:
            return value
        if option is float and isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        if option in (int, bool) and type(value) is option:
            return value
    words = " or ".join(_words(option) for option in _options(kind))
    raise InputError(f"{name} must be {words}, not {value!r}")


def _words(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return ", ".join(get_args(kind))
    if get_origin(kind) is tuple:
        return "whole numbers"
    return {int: "a whole number", float: "a number", bool: "true or false", types.NoneType: "none"}[kind]


Rule = tuple[Callable[[Any], bool], str]
AT_LEAST_ONE: Rule = (lambda value: value >= 1, "must be at least 1")
NOT_NEGATIVE: Rule = (lambda value: value >= 0, "must be at least 0")
POSITIVE: Rule = (lambda value: 0 < value < np.inf, "must be positive")
SHARE: Rule = (lambda value: 0 <= value <= 1, "is a share between 0 and 1")
POSITIVE_SHARE: Rule = (lambda value: 0 < value <= 1, "is a share above 0 and at most 1")
BELOW_ONE: Rule = (lambda value: 0 <= value < 1, "must be at least 0 and below 1")


def _require(config: Any, group: str, names: tuple[str, ...], rule: Rule) -> None:
    holds, words = rule
    for name in names:
        value = getattr(config, name)
        if value is not None and not holds(value):
            raise InputError(f"{group}.{name} {words}, not {value}")
