"""The log that ships with the package: what a dispatch centre would write down, a row per step."""

from pathlib import Path
from typing import Any

import numpy as np

from aetdice.data import Episodes
from aetdice.data.readers.arrow import arrow_column, pyarrow
from aetdice.envs.dispatch.centre import ACTIONS, CONDITIONS, DISTRICTS
from aetdice.files import write_whole

LOG = Path(__file__).with_name("log.parquet")
"""3,000 shifts, seed 0."""


def log_table(episodes: Episodes) -> Any:
    """An Arrow table in words; shifts end by the clock, so they are truncated."""
    pa = pyarrow()
    number = np.repeat(np.arange(len(episodes)), episodes.lengths)
    step = np.arange(episodes.steps) - episodes.starts[number]
    seen = episodes.observations[np.arange(episodes.steps) + number]
    columns: dict[str, Any] = {
        "shift": pa.array(number.astype(np.int32)),
        "step": pa.array(step.astype(np.int8)),
    }
    for index, name in enumerate(DISTRICTS):
        columns[f"calls_{name}"] = pa.array(seen[:, index].astype(np.int8))
    columns["van"] = arrow_column(seen[:, 3], DISTRICTS, None)
    columns["condition"] = arrow_column(seen[:, 4], CONDITIONS, None)
    columns["steps_left"] = pa.array(seen[:, 5].astype(np.int8))
    columns["action"] = arrow_column(episodes.actions, ACTIONS, None)
    for index, name in enumerate(DISTRICTS):
        columns[f"reward_{name}"] = pa.array(episodes.rewards[:, index].astype(np.int8))
    columns["truncated"] = pa.array(step == episodes.lengths[number] - 1)
    return pa.table(columns)


def write_log(path: Path, episodes: Episodes) -> None:
    """The log as a Parquet file, whole or not at all."""
    table = log_table(episodes)
    from pyarrow import parquet

    write_whole(path, lambda partial: parquet.write_table(table, partial, compression="zstd"))
