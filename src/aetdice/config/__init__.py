"""How to train, by concern: every setting stands here once, with its default and a sentence."""

import dataclasses
import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_type_hints

from aetdice.config.values import (
    AT_LEAST_ONE,
    BELOW_ONE,
    NOT_NEGATIVE,
    POSITIVE,
    POSITIVE_SHARE,
    SHARE,
    fitted,
    parsed,
    require,
    settle,
)
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
        settle(self, "network")
        if not self.hidden or min(self.hidden) < 1:
            raise InputError(f"network.hidden needs at least one positive width, not {self.hidden}")
        require(self, "network", ("fourier", "value_fourier", "components"), AT_LEAST_ONE)
        require(self, "network", ("observation_fourier",), NOT_NEGATIVE)
        require(self, "network", ("value_gain",), POSITIVE)


@dataclass(frozen=True)
class RewardConfig:
    """How the utility of an episode is paid out to its steps."""

    terminal: bool = False
    """Pay F(R) - F(0) at the end of an episode instead of r̃ along the way (AETDICE, ESR-IQL)."""

    def __post_init__(self) -> None:
        settle(self, "reward")


@dataclass(frozen=True)
class DualConfig:
    """The dual stage of AETDICE, OptiDICE and FairDICE: ν and the slack."""

    steps: int = 12_000
    """Updates of ν."""
    until_flat: bool = False
    """Stop before, once β has fallen and the dual value no longer does; chosen with `steps`."""
    batch: int = 256
    """Transitions per update."""
    starts: int = 16
    """Initial states per update."""
    window: int = 16
    """Transitions are drawn in runs of so many consecutive ones, which share evaluations of ν."""
    first_beta: float = 0.1
    """Where β starts to fall from; 1/(1-γ) times as high where the flow is discounted."""
    annealing: float = 0.5
    """The share of the stage during which β falls."""
    averaging: float = 0.999
    """Decay of the average of ν's weights."""
    slack_rate: float = 3e-3
    """Step of the slack towards the utilities that the ratios attain."""
    refit: Literal["constants", "layer", "none"] = "constants"
    """Exact refit at the end: ν's constants and scale, or its last layer, or nothing."""
    n_step: int | None = None
    """Steps that one transition of AETDICE spans; chosen from the data, or 1 where β is given."""
    divergence: Literal["chi2", "soft-chi2", "kl"] = "chi2"
    """The φ of the regulariser."""
    gamma: float = 0.99
    """Discount of the infinite-horizon flow (OptiDICE, FairDICE)."""

    def __post_init__(self) -> None:
        settle(self, "dual")
        require(self, "dual", ("steps", "batch", "starts", "window", "n_step"), AT_LEAST_ONE)
        require(self, "dual", ("averaging",), SHARE)
        require(self, "dual", ("annealing", "slack_rate"), POSITIVE_SHARE)
        require(self, "dual", ("gamma",), BELOW_ONE)
        require(self, "dual", ("first_beta",), POSITIVE)


@dataclass(frozen=True)
class IqlConfig:
    """The value stage of ESR-IQL."""

    steps: int = 12_000
    """Updates of Q and V."""
    batch: int = 256
    """Transitions per update."""
    critic_averaging: float = 0.995
    """Decay of the slow average of the critics: the smaller, the sooner values reach the start."""
    n_step: int | None = None
    """Steps of recorded reward in a target of Q; by default as many as let values reach the start."""

    def __post_init__(self) -> None:
        settle(self, "iql")
        require(self, "iql", ("steps", "batch", "n_step"), AT_LEAST_ONE)
        require(self, "iql", ("critic_averaging",), SHARE)


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
    courses: int = 8
    """At most so many courses of a mixture policy, where whole episodes of continuous states are weighed."""

    def __post_init__(self) -> None:
        settle(self, "extraction")
        require(self, "extraction", ("steps", "batch", "courses"), AT_LEAST_ONE)
        require(self, "extraction", ("floor", "warm_up", "early_oversampling"), SHARE)
        require(self, "extraction", ("dropout",), BELOW_ONE)


@dataclass(frozen=True)
class TrainerConfig:
    """What is about the run and not about the method."""

    effort: Literal["quick", "standard", "thorough"] = "standard"
    """How long to choose settings and to train, where they are chosen from the data."""
    holdout: float | None = None
    """Share of episodes kept for choosing settings; by default a tenth if nothing else tells them apart."""
    report: float | None = None
    """Share of episodes kept for estimates alone; by default a tenth of a log with 100 or more, else none."""
    precision: Literal["highest", "tensorfloat32", "bfloat16"] = "highest"
    """Of products in updates, where a device offers a choice; lower ones are too coarse for β below 1e-3."""
    chunk: int = 500
    """Updates between metrics and checkpoints."""
    streaming: bool | None = None
    """Leave data on disk, read ahead of the updates; by default stores above 1 GiB, where possible."""

    def __post_init__(self) -> None:
        settle(self, "trainer")
        for name in ("holdout", "report"):
            share = getattr(self, name)
            if share is not None and not 0 <= share < 1:
                raise InputError(f"trainer.{name} is a share of the episodes below 1, not {share}")
        require(self, "trainer", ("chunk",), AT_LEAST_ONE)


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

    def __post_init__(self) -> None:
        settle(self, "ablation")


@dataclass(frozen=True)
class TrainingConfig:
    """How to train; the same for every member of a population."""

    network: NetworkConfig = field(default_factory=NetworkConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)
    dual: DualConfig = field(default_factory=DualConfig)
    iql: IqlConfig = field(default_factory=IqlConfig)
    extraction: ExtractionConfig = field(default_factory=ExtractionConfig)
    trainer: TrainerConfig = field(default_factory=TrainerConfig)
    ablation: AblationConfig = field(default_factory=AblationConfig)

    def __post_init__(self) -> None:
        for group, kind in get_type_hints(TrainingConfig).items():
            if not isinstance(getattr(self, group), kind):
                raise InputError(f"{group} must be a {kind.__name__}, not {getattr(self, group)!r}")

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
            groups.setdefault(group, {})[setting] = fitted(name, value, kind)
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


RENAMED = {"dual.terminal_reward": "reward.terminal"}
"""Names of earlier versions, which are still read."""


def is_among(name: str, names: tuple[str, ...]) -> bool:
    """Whether a dotted name is listed, by itself or with its group."""
    return name in names or name.split(".")[0] in names


def parse_setting(text: str) -> tuple[str, Any]:
    """`dual.annealing=0.3` as a name and a value of the right type."""
    name, sign, value = text.partition("=")
    if not sign:
        raise InputError(f"a setting is written as name=value, for example dual.annealing=0.3; not {text!r}")
    return name.strip(), parsed(value.strip(), kind_of(name.strip()))


def kind_of(name: str) -> Any:
    """The type of a setting, by its dotted name."""
    return _find(name)[2]


def _find(name: str) -> tuple[str, str, Any]:
    """Group, setting and type of a dotted name, or of one that it had before."""
    name = RENAMED.get(name, name)
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
