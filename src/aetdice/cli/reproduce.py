"""`aetdice reproduce`, the paper's studies, in parts that save, resume and merge; and `aetdice demo`."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro
from rich.console import Group

from aetdice.cli.options import Quiet, Shown
from aetdice.cli.study_page import PAGE, write_page
from aetdice.engines import ENGINES
from aetdice.report.terminal import console
from aetdice.studies.demo import demo
from aetdice.studies.parts import read_summary
from aetdice.studies.populations import parts_of
from aetdice.studies.registry import STUDIES, Named
from aetdice.studies.running import Place, folder_of, run_study, write_all


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
    workers: int | None = None
    """Processes that do a part each (default: none, one part after the other in this one)."""
    threads: int = 1
    """Of each process."""
    engine: Literal[*ENGINES] | None = None  # type: ignore[valid-type]
    """Where parts run: processes of this machine, or a Ray cluster."""
    address: str | None = None
    """Of the Ray cluster (default: the one this machine belongs to)."""
    gpus: float = 0.0
    """What a part asks of a Ray cluster."""
    list: bool = False
    """Name the parts and stop."""
    report: bool = False
    """Write report.html into the folder as well: one page with the tables, figures and episodes."""
    shown: Shown = Shown()

    def run(self) -> None:
        named = Named(self.study, self.quick)
        study = named.make()
        if self.list:
            names = [part.name for part in parts_of(study)]
            self.shown.answer({"parts": names}, lambda: names)
            return
        folder = self.out or folder_of(named)
        place = Place(self.engine, self.workers, self.threads, self.address, self.gpus)
        if not place.is_here:  # an accelerator's memory is for the workers
            os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        with self.shown.progress() as progress:
            done = run_study(named, folder, place, self.part, progress)
        if not done.results:
            done.check()
        tables, remarks = write_all(study, done.results, folder)
        self.shown.say(*remarks)
        pages = [write_page(named, done.results, folder, folder / PAGE)] if self.report else []
        self.shown.answer(read_summary(folder), lambda: Group(tables, *(f"page: {page}" for page in pages)))
        done.check()


@dataclass(frozen=True)
class Demo:
    """Solve the two-step problem, learn Fair-Taxi from data; print tables, write a picture."""

    out: Path = Path("demo")
    """Where the picture and its data go."""
    said: Quiet = Quiet()

    def run(self) -> None:
        with self.said.progress() as progress:
            demo(self.out, console(), progress or False)
