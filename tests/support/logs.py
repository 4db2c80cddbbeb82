"""A small log of shifts, as a table and as episodes."""

from typing import Any

import numpy as np

from aetdice import Episodes, load_dataset

COLUMNS = {"actions": "send", "rewards": ["served", "waited"]}
DISTRICTS = np.array(["north", "south", "west"])


def log_columns(episodes: int = 40, *, seed: int = 0, last: bool = True) -> dict[str, list[Any]]:
    """Ragged shifts with a category in observations and actions; the first has one step.

    With `last` every shift has a last row, which only holds an observation.
    """
    rng = np.random.default_rng(seed)
    rows: list[tuple[Any, ...]] = []
    for index in range(episodes):
        length = 1 if index == 0 else int(rng.integers(2, 6))
        over = bool(index % 3)
        for step in range(length + last):
            seen = (f"d{index}", step, float(rng.normal()), str(rng.choice(DISTRICTS)))
            if step == length:
                rows.append((*seen, None, None, None, None, None))
                continue
            end = step == length - 1
            rewards = rng.integers(0, 3, 2) + 0.25
            flags = (end and over, end and not over)
            rows.append((*seen, str(rng.choice(["go", "stay"])), *map(float, rewards), *flags))
    names = ["shift", "step", "queue", "district", "send", "served", "waited", "terminated", "truncated"]
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def log_episodes(**options: Any) -> Episodes:
    """The log, through Arrow."""
    import pyarrow as pa

    return load_dataset(pa.table(log_columns(**options)), columns=COLUMNS)
