"""Episodes, and their augmentation by accrued reward and time."""

from aetdice.data.augmentation import (
    Transitions,
    accrue,
    augment,
    censoring_weights,
    transformed_rewards,
)
from aetdice.data.episodes import Episode, Episodes

__all__ = [
    "Episode",
    "Episodes",
    "Transitions",
    "accrue",
    "augment",
    "censoring_weights",
    "transformed_rewards",
]
