"""`aetdice estimate`: what a run's policy and its twin would attain, by logged episodes alone."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from rich.console import Console

from aetdice.cli.data import show
from aetdice.data import Episodes
from aetdice.datasets import load_dataset
from aetdice.errors import InputError
from aetdice.files import versions
from aetdice.learning.estimates import estimate_member, parts_of
from aetdice.learning.loading import load_run
from aetdice.learning.run import Run
from aetdice.report.tables import estimate_table

SEEN = "no episodes were kept from this training, so these are those it learned from: that flatters a policy"


@dataclass(frozen=True)
class EstimateCommand:
    """J of a run's policy and its twin with intervals, from logged episodes and without an environment."""

    folder: tyro.conf.Positional[Path]
    data: Path | None = None
    """Other episodes than those the run kept: a file of the same columns as the run's own."""
    member: int | None = None
    """Which one; by default the selected."""
    json: bool = False
    """Print one JSON object instead of a table."""

    def run(self) -> None:
        run = load_run(self.folder)
        count, index = len(run.members), run.selections[0].chosen if self.member is None else self.member
        if not 0 <= index < count:
            raise InputError(f"the run has members 0 to {count - 1}, not {index}")
        seen, kept = parts_of(run) if self.data is None else (None, self.others(run))
        if kept is None:
            show(SEEN, to_stderr=self.json)
            seen, kept = None, seen
        assert kept is not None
        found = estimate_member(run.members[index], kept, seen, run.horizon)
        result: dict[str, Any] = {"member": index, **found, "versions": versions()}
        if self.json:
            print(json.dumps(result))
        else:
            Console().print(estimate_table(result))

    def others(self, run: Run) -> Episodes:
        """The episodes of another file, read as the run's own."""
        asked = run.request["dataset"]
        columns = (asked["origin"] or {}).get("columns")
        return load_dataset(self.data, columns=columns, ends=asked["ends"], horizon=run.horizon)
