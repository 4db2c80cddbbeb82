"""Episodes, their augmentation by accrued reward and time, and where they are kept."""

from aetdice.data.appending import append_episodes
from aetdice.data.augmentation import (
    Transitions,
    accrue,
    augment,
    censoring_weights,
    transformed_rewards,
)
from aetdice.data.coding import Coding, coding_from
from aetdice.data.columns import Columns
from aetdice.data.d4morl import iterate_d4morl, read_d4morl
from aetdice.data.episodes import Episode, Episodes
from aetdice.data.minari import load_minari, load_minari_facts, save_minari
from aetdice.data.readers import FORMATS, format_of, read_file, read_table
from aetdice.data.store import load_episodes, load_facts, save_episodes
from aetdice.data.transforms import Transform, transform_episodes, transform_from

__all__ = [
    "FORMATS",
    "Coding",
    "Columns",
    "Episode",
    "Episodes",
    "Transform",
    "Transitions",
    "accrue",
    "append_episodes",
    "augment",
    "censoring_weights",
    "coding_from",
    "format_of",
    "iterate_d4morl",
    "load_episodes",
    "load_facts",
    "load_minari",
    "load_minari_facts",
    "read_d4morl",
    "read_file",
    "read_table",
    "save_episodes",
    "save_minari",
    "transform_episodes",
    "transform_from",
    "transformed_rewards",
]
