"""`aetdice estimate`: what policies and their twins would attain, by logged episodes alone."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from aetdice.cli.options import Shown
from aetdice.data import Episodes
from aetdice.datasets import load_dataset
from aetdice.errors import InputError
from aetdice.files import versions
from aetdice.learning.comparison import select
from aetdice.learning.estimates import estimate_member, is_own, own_parts
from aetdice.learning.loading import load_run
from aetdice.learning.run import Run
from aetdice.progress import listening
from aetdice.report.tables import estimate_table, selection_table

SEEN = "no episodes were kept from this training, so these are those it learned from: that flatters a policy"


@dataclass(frozen=True)
class EstimateCommand:
    """J of policies and their twins with intervals, from logged episodes and without an environment.

    Of several runs, which one to take: that with the largest lower bound, or cloning if none beats it.
    """

    folders: tyro.conf.Positional[tuple[Path, ...]]
    data: Path | None = None
    """Other episodes than those the runs kept: a file of the same columns as their own. If it is their own,
    moved, only what they kept of it counts as unseen."""
    member: int | None = None
    """Which one of a single run; by default the selected."""
    shown: Shown = Shown()

    def run(self) -> None:
        if not self.folders:
            raise InputError("which runs? give estimate their folders")
        runs = [load_run(folder) for folder in self.folders]
        if self.member is not None and len(runs) > 1:
            raise InputError("--member names a member of one run: give one folder")
        member = runs[0].member(self.member)
        log, seen = self.parts(runs[0])
        names = [str(folder) for folder in self.folders]
        with self.shown.progress() as progress, listening(progress):
            if len(runs) > 1:
                result = select(runs, log, seen=seen, names=names).record()
            else:
                found = estimate_member(member, log, seen, runs[0].horizon)
                result = {"member": runs[0].members.index(member), **found}
        table = estimate_table if len(runs) == 1 else selection_table
        self.shown.answer({**result, "versions": versions()}, lambda: table(result))

    def parts(self, run: Run) -> tuple[Episodes, Episodes | None]:
        """What to estimate from, and what the run has seen of the same data."""
        others = None
        if self.data is not None:
            asked = run.request["dataset"]
            columns = (asked["origin"] or {}).get("columns")
            others = load_dataset(self.data, columns=columns, ends=asked["ends"], horizon=run.horizon)
            if not is_own(run, others):
                return others, None
        log, seen = own_parts(run, others)
        if seen is None:
            self.shown.say(SEEN)
        return log, seen
