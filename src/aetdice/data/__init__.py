"""Episodes, their augmentation by accrued reward and time, and where they are kept."""

from aetdice.data.augmentation import (
    Transitions,
    accrue,
    augment,
    censoring_weights,
    transformed_rewards,
)
from aetdice.data.d4morl import iterate_d4morl, read_d4morl
from aetdice.data.episodes import Episode, Episodes
from aetdice.data.minari import load_minari, load_minari_facts, save_minari
from aetdice.data.store import load_episodes, load_facts, save_episodes
from aetdice.data.transforms import Transform, transform_episodes, transform_from

__all__ = [
    "Episode",
    "Episodes",
    "Transform",
    "Transitions",
    "accrue",
    "augment",
    "censoring_weights",
    "iterate_d4morl",
    "load_episodes",
    "load_facts",
    "load_minari",
    "load_minari_facts",
    "read_d4morl",
    "save_episodes",
    "save_minari",
    "transform_episodes",
    "transform_from",
    "transformed_rewards",
]
