"""The rows of a sweep, in the plan's order, and which settings were selected."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from aetdice.learning.selection import Candidate, select
from aetdice.learning.table import PASSING, TOGETHER, Rows
from aetdice.sweeps.jobs import Job


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
