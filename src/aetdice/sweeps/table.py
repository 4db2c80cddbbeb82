"""The table of a sweep: one row per member, in the plan's order, and which settings were selected."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aetdice.data.readers.arrow import pyarrow
from aetdice.errors import InputError
from aetdice.files import write_whole
from aetdice.learning.selection import Candidate, select
from aetdice.sweeps.jobs import Job
from aetdice.sweeps.values import TOGETHER

RESULTS = "results.parquet"
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


def rows_of(found: Mapping[str, Mapping[str, Any]], jobs: Sequence[Job]) -> Rows:
    """The rows of the jobs that are done, with what was selected; `found` has what each job's file says."""
    rows = [
        {**row, **{name: found[job.id][name] for name in PASSING}}
        for job in jobs
        if job.id in found
        for row in found[job.id]["rows"]
    ]
    kept: dict[tuple[str, ...], Rows] = {}
    for row in rows:
        kept.setdefault((row["dataset"], row["algorithm"], row["definition"]), []).append(row)
    for members in kept.values():
        _mark_selected(members)
    datasets, algorithms, objectives = (
        list(dict.fromkeys(row[name] for row in rows)) for name in ("dataset", "algorithm", "definition")
    )
    return sorted(
        rows,
        key=lambda row: (
            datasets.index(row["dataset"]),
            objectives.index(row["definition"]),
            algorithms.index(row["algorithm"]),
        ),
    )


def setting_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """What distinguishes a member, except its objective and its seed."""
    return (*(row.get(name) for name in TOGETHER), json.dumps(row["settings"], sort_keys=True))


def _mark_selected(rows: Rows) -> None:
    """The best setting of one algorithm for one objective, whichever jobs its members are from."""
    common = set.intersection(*(set(row["diagnostics"]) for row in rows))
    if not common & {"flow_violation", "effective_episodes"}:
        common.discard("held_out_claimed_value")  # settings of two kinds: nothing weighs them alike
    candidates = [
        Candidate(row["definition"], setting_of(row), {name: row["diagnostics"][name] for name in common})
        for row in rows
    ]
    (selection,) = select(candidates)
    chosen = setting_of(rows[selection.chosen])
    for row in rows:
        row |= {"selected": setting_of(row) == chosen, "rule": selection.rule}


def arrow_table(rows: Rows) -> Any:
    """An Arrow table of exactly the columns of `SCHEMA`."""
    pa = pyarrow()
    schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in SCHEMA.items()])
    flat = [{**row, **{name: json.dumps(row[name]) for name in AS_JSON}} for row in rows]
    return pa.Table.from_pylist(flat, schema=schema)


def write_table(table: Any, folder: Path) -> Path:
    """`results.parquet` in the folder of a sweep."""
    import pyarrow.parquet as parquet

    path = folder / RESULTS
    write_whole(path, lambda partial: parquet.write_table(table, partial))
    return path


def read_table(folder: Path | str) -> Any:
    """The table that a sweep has left in its folder."""
    pa = pyarrow()
    import pyarrow.parquet as parquet

    path = Path(folder) / RESULTS
    try:
        return parquet.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
