"""The table of many trainings: one row per member, in the same columns wherever it comes from."""

import json
from pathlib import Path
from typing import Any

from aetdice.algorithms import ALGORITHMS
from aetdice.config import TrainingConfig
from aetdice.data.readers.arrow import pyarrow
from aetdice.errors import InputError
from aetdice.files import write_whole

RESULTS = "results.parquet"
LEARNING_RATE = "learning_rate"
OWN = tuple(dict.fromkeys(name for make in ALGORITHMS.values() for name in make(1, TrainingConfig()).sweeps))
"""Values of the algorithms' own: members that differ in them, or in learning rates, are trained together."""
TOGETHER = (*OWN, LEARNING_RATE)
TEXT, NUMBER, WHOLE, TRUTH = "string", "float64", "int64", "bool"
SCHEMA = {
    "dataset": TEXT,
    "data_sha256": TEXT,
    "objective": TEXT,
    "definition": TEXT,
    "algorithm": TEXT,
    "horizon": WHOLE,
    **dict.fromkeys(TOGETHER, NUMBER),
    "settings": TEXT,
    "seed": WHOLE,
    "selected": TRUTH,
    "rule": TEXT,
    **{f"{name}{end}": NUMBER for name in ("score", "twin_score") for end in ("", "_low", "_high")},
    "exact_score": NUMBER,
    "data_score": NUMBER,
    **{f"estimate{end}": NUMBER for end in ("", "_low", "_high")},
    "support": TEXT,
    "verdict": TEXT,
    "trusted": TRUTH,
    "diagnostics": TEXT,
    "versions": TEXT,
    "job": TEXT,
    "member": WHOLE,
    "seconds": NUMBER,
    "host": TEXT,
    "attempts": WHOLE,
}
"""Every column and its type."""
PASSING = ("seconds", "host", "attempts")
"""Columns that differ from one time to the next; all others are the same on every engine."""
AS_JSON = ("settings", "diagnostics", "versions")

Rows = list[dict[str, Any]]


def arrow_table(rows: Rows) -> Any:
    """An Arrow table of exactly the columns of `SCHEMA`."""
    pa = pyarrow()
    schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in SCHEMA.items()])
    flat = [{**row, **{name: json.dumps(row[name]) for name in AS_JSON}} for row in rows]
    return pa.Table.from_pylist(flat, schema=schema)


def write_table(table: Any, folder: Path) -> Path:
    """`results.parquet` in a folder."""
    import pyarrow.parquet as parquet

    path = folder / RESULTS
    write_whole(path, lambda partial: parquet.write_table(table, partial))
    return path


def read_table(folder: Path | str) -> Any:
    """The table that a sweep or a study has left in its folder."""
    pa = pyarrow()
    import pyarrow.parquet as parquet

    path = Path(folder) / RESULTS
    try:
        return parquet.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
