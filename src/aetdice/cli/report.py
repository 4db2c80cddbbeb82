"""`aetdice report`: runs as one HTML page."""

import webbrowser
from dataclasses import dataclass
from pathlib import Path

import tyro

from aetdice.cli.options import Shown
from aetdice.errors import InputError
from aetdice.page import write_report
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
    """Folders of finished runs, of the same objectives; that of a sweep stands for its jobs."""
    out: Path | None = None
    """The file to write (default: report.html in the first folder)."""
    episodes: int | None = None
    """Sampled per policy, where there is an environment (default: as many as the run was evaluated with)."""
    open: bool = False
    """Show it in a browser."""
    shown: Shown = Shown()

    def run(self) -> None:
        runs = [run for folder in self.runs for run in runs_in(folder)]
        path = self.out or (self.runs[0] if self.runs else Path()) / "report.html"
        with self.shown.progress() as progress:
            write_report(runs, path, episodes=self.episodes, progress=progress)
        self.shown.answer({"written": str(path), "bytes": path.stat().st_size}, lambda: [str(path)])
        if self.open:
            webbrowser.open(path.resolve().as_uri())
