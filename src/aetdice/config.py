"""How to train: everything that is the same for all members of a population."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from aetdice.errors import InputError


@dataclass(frozen=True)
class TrainingConfig:
    """How to train; the same for every member of a population."""

    hidden: tuple[int, ...] = (128, 128)
    """Widths of the hidden layers of ν and of the policies."""
    batch: int = 256
    """Steps per update."""
    cloning_batch: int | None = None
    """Steps per update of the policies, if not as many."""
    window: int = 16
    """Of so many consecutive steps ν is evaluated once each, not twice (DICE)."""
    value_steps: int = 12_000
    """Updates of ν, or of the values of ESR-IQL."""
    cloning_steps: int = 6_000
    """Updates of the policies."""
    first_beta: float = 0.1
    """Where β starts to fall from (DICE)."""
    annealing: float = 0.5
    """The share of the first stage during which β falls (DICE)."""
    averaging: float = 0.999
    """Decay of the average of ν's weights (DICE)."""
    critic_averaging: float = 0.995
    """Decay of the slow average of the critics: the quicker, the sooner values reach the start (ESR-IQL)."""
    slack_rate: float = 3e-3
    """Step of the slack towards the utilities that the ratios attain (DICE)."""
    polish: Literal["constants", "layer", "none"] = "constants"
    """Solve exactly for ν's constants and scale, or for its last layer, before cloning (DICE)."""
    floor: float = 0.0
    """Share of cloning steps drawn from the behaviour, for states the ratios leave out."""
    warm_up: float = 0.0
    """Share of cloning steps, the first ones, in which a policy is shown all of the data, as its twin is."""
    early: float = 0.0
    """Share of cloning steps that are about the first steps of episodes, where their course is chosen."""
    dropout: float = 0.0
    """Share of a policy's hidden units left out of each cloning update, against learning steps by heart."""
    foresight: int = 0
    """Ratios are read from each step and so many after it together, where episodes do not meet (AETDICE)."""
    extraction: Literal["drawn", "weighted"] = "drawn"
    """Show a policy steps as often as they weigh, or all alike with weights in the loss."""
    divergence: Literal["chi2", "soft-chi2", "kl"] = "chi2"
    """The φ of the regulariser (DICE)."""
    gamma: float = 0.99
    """Discount of the infinite-horizon flow (OptiDICE, FairDICE)."""
    time: Literal["input", "heads", "augmented"] = "input"
    """How ν knows the time: as an input, by one head per step, or so with the paper's augmentation."""
    offsets: bool = True
    """Give ν a free constant per time step (AETDICE)."""
    accrued: bool = True
    """Let the networks see the accrued reward; needless for affine F only."""
    terminal_reward: bool = False
    """Pay F(R) - F(0) at the end of an episode instead of along the way."""
    waves: int = 0
    """Frequencies at which continuous observations are also shown as sines, to tell near ones apart."""
    frequencies: int = 8
    """At which accrued reward and time are shown as sines; 3 was better in the mazes, 8 on Fair-Taxi."""
    value_frequencies: int | None = None
    """At which they are shown to ν or the values of ESR-IQL, if not as many."""
    value_gain: float = 1.0
    """Factor of continuous observations as ν or these values see them: small where strides swing them."""
    components: int = 5
    """Gaussians in the policy mixture for continuous actions."""
    holdout: float | None = None
    """Share of episodes kept for choosing β; by default a tenth if there are several, else none."""
    precision: Literal["highest", "tensorfloat32", "bfloat16"] = "highest"
    """Of products in updates, where a device offers a choice; lower ones are too coarse for β below 1e-3."""
    chunk: int = 500
    """Updates between reports and checkpoints."""

    def __post_init__(self) -> None:
        positive = ("batch", "cloning_batch", "value_steps", "cloning_steps", "window", "chunk", "components")
        for name in (*positive, "frequencies", "value_frequencies"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} must be at least 1, not {value}")
        if not 0 < self.value_gain < np.inf:
            raise InputError(f"value_gain must be positive, not {self.value_gain}")
        for name in ("waves", "foresight"):
            if getattr(self, name) < 0:
                raise InputError(f"{name} must be at least 0, not {getattr(self, name)}")
        if not self.hidden or min(self.hidden) < 1:
            raise InputError(f"hidden needs at least one positive width, not {self.hidden}")
        if self.holdout is not None and not 0 <= self.holdout < 1:
            raise InputError(f"holdout is a share of the episodes below 1, not {self.holdout}")
        for name in ("floor", "warm_up", "early", "averaging", "critic_averaging"):
            share = getattr(self, name)
            if not 0 <= share <= 1:
                raise InputError(f"{name} is a share between 0 and 1, not {share}")
        for name, share in {"annealing": self.annealing, "slack_rate": self.slack_rate}.items():
            if not 0 < share <= 1:
                raise InputError(f"{name} is a share above 0 and at most 1, not {share}")
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout is a share below 1, not {self.dropout}")
        if not 0 <= self.gamma < 1:
            raise InputError(f"gamma must be at least 0 and below 1, not {self.gamma}")
        if not np.isfinite(self.first_beta) or self.first_beta <= 0:
            raise InputError(f"first_beta must be positive, not {self.first_beta}")
