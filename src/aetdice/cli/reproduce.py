"""`aetdice reproduce`, the paper's studies, in parts that save, resume and merge; and `aetdice demo`."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro
from rich.console import Group

from aetdice.cli.options import Quiet, Shown
from aetdice.page import write_study_report
from aetdice.report.terminal import console
from aetdice.studies import STUDIES
from aetdice.studies.demo import demo
from aetdice.studies.parts import Results, complete, read_summary
from aetdice.studies.populations import parts_of
from aetdice.studies.reporting import report, told
from aetdice.studies.study import Study


@dataclass(frozen=True)
class Reproduce:
    """Run a study of the paper; what is done already in the folder is not done again."""

    study: tyro.conf.Positional[Literal[*STUDIES]]  # type: ignore[valid-type]
    """Which study."""
    out: Path | None = None
    """Where results, figures and checkpoints go (default: reproduce/STUDY, or …-quick)."""
    quick: bool = False
    """A small honest version for a CPU."""
    part: tuple[str, ...] = ()
    """Only these parts, for instance to spread a study over computers; tables show what is there."""
    list: bool = False
    """Name the parts and stop."""
    report: bool = False
    """Write report.html into the folder as well: one page with the tables, figures and episodes."""
    shown: Shown = Shown()

    def run(self) -> None:
        study = STUDIES[self.study](self.quick)
        parts = parts_of(study)
        if self.list:
            names = [part.name for part in parts]
            self.shown.answer({"parts": names}, lambda: names)
            return
        folder = self.out or Path("reproduce") / (f"{self.study}-quick" if self.quick else self.study)
        with self.shown.progress() as progress:
            results = complete(parts, folder, self.part, progress)
        tables = report(study, results, folder)
        pages = [write_page(study, results, folder, self.command())] if self.report else []
        self.shown.answer(read_summary(folder), lambda: Group(tables, *(f"page: {page}" for page in pages)))

    def command(self) -> str:
        """What makes the whole study again."""
        words = ["aetdice", "reproduce", self.study, *(["--quick"] if self.quick else []), "--report"]
        return shlex.join([*words, *(["--out", str(self.out)] if self.out else [])])


def write_page(study: Study, results: Results, folder: Path, command: str | None = None) -> Path:
    """One HTML page of a study whose `report` is written, into its folder."""
    figures = sorted(folder.glob("*.png"))
    page = folder / "report.html"
    return write_study_report(told(study, results, folder), page, figures=figures, command=command)


@dataclass(frozen=True)
class Demo:
    """Solve the two-step problem, learn Fair-Taxi from data; print tables, write a picture."""

    out: Path = Path("demo")
    """Where the picture and its data go."""
    said: Quiet = Quiet()

    def run(self) -> None:
        with self.said.progress() as progress:
            demo(self.out, console(), progress or False)
