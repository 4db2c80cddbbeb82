"""`aetdice demo`: the main job on data that comes with the package."""

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from aetdice.report.progress import console_progress
from aetdice.studies.demo import demo as run_demo


@dataclass(frozen=True)
class Demo:
    """Solve the two-step problem, learn Fair-Taxi from data; print tables, write a picture."""

    out: Path = Path("demo")
    """Where the picture and its data go."""

    def run(self) -> None:
        with console_progress() as progress:
            run_demo(self.out, Console(), progress)
