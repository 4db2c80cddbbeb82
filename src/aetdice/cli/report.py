"""`aetdice report`: runs as one HTML page."""

import webbrowser
from dataclasses import dataclass
from pathlib import Path

import tyro

from aetdice.cli.options import Shown
from aetdice.cli.study_page import PAGE, page_in
from aetdice.errors import InputError
from aetdice.page import write_report
from aetdice.studies.running import STUDY
from aetdice.sweeps.job import finished_jobs
from aetdice.sweeps.jobs import PLAN


def runs_in(folder: Path) -> list[Path]:
    """A run, or the jobs of a sweep that are done."""
    if not (folder / PLAN).is_file():
        return [folder]
    if found := finished_jobs(folder):
        return found
    raise InputError(f"no job of the sweep in {folder} is done yet")


@dataclass(frozen=True)
class ReportCommand:
    """One HTML page about one or several runs, which needs no network to be read."""

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Folders of finished runs, of the same objectives; that of a sweep stands for its jobs. Or a study's."""
    out: Path | None = None
    """The file to write (default: report.html in the first folder)."""
    episodes: int | None = None
    """Sampled per policy, where there is an environment (default: as many as the run was evaluated with)."""
    open: bool = False
    """Show it in a browser."""
    shown: Shown = Shown()

    def run(self) -> None:
        path = self.out or (self.runs[0] if self.runs else Path()) / PAGE
        if any((folder / STUDY).is_file() for folder in self.runs):
            self.write_study(path)
        else:
            runs = [run for folder in self.runs for run in runs_in(folder)]
            with self.shown.progress() as progress:
                write_report(runs, path, episodes=self.episodes, progress=progress)
        self.shown.answer({"written": str(path), "bytes": path.stat().st_size}, lambda: [str(path)])
        if self.open:
            webbrowser.open(path.resolve().as_uri())

    def write_study(self, path: Path) -> None:
        """The page of a study, which shows the episodes that it has sampled itself."""
        if len(self.runs) > 1:
            raise InputError("a study has a page of its own: give its folder alone")
        if self.episodes is not None:
            raise InputError("a study shows the episodes that it was evaluated with: leave --episodes out")
        page_in(self.runs[0], path)
