"""`aetdice estimate`: what a run's policy and its twin would attain, by logged episodes alone."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from aetdice.cli.options import Shown
from aetdice.data import Episodes
from aetdice.datasets import load_dataset
from aetdice.files import versions
from aetdice.learning.estimates import estimate_member, parts_of
from aetdice.learning.loading import load_run
from aetdice.learning.run import Run
from aetdice.progress import listening
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
    shown: Shown = Shown()

    def run(self) -> None:
        run = load_run(self.folder)
        member = run.member(self.member)
        seen, kept = parts_of(run) if self.data is None else (None, self.others(run))
        if kept is None:
            self.shown.say(SEEN)
            seen, kept = None, seen
        assert kept is not None
        with self.shown.progress() as progress, listening(progress):
            found = estimate_member(member, kept, seen, run.horizon)
        result = {"member": run.members.index(member), **found, "versions": versions()}
        self.shown.answer(result, lambda: estimate_table(result))

    def others(self, run: Run) -> Episodes:
        """The episodes of another file, read as the run's own."""
        asked = run.request["dataset"]
        columns = (asked["origin"] or {}).get("columns")
        return load_dataset(self.data, columns=columns, ends=asked["ends"], horizon=run.horizon)
