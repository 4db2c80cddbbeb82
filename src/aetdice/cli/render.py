"""`aetdice render`: a run's policy beside its cloning twin, to look at."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from aetdice.cli.options import Shown
from aetdice.datasets import environment_of
from aetdice.errors import InputError
from aetdice.evaluation.scores import SEED
from aetdice.learning.loading import load_run
from aetdice.learning.rendering import render
from aetdice.progress import listening


@dataclass(frozen=True)
class Render:
    """Draw sampled episodes of a run's policy beside its twin, in the run's own environment."""

    folder: tyro.conf.Positional[Path]
    out: Path | None = None
    """The animation: a new .gif file."""
    strip: Path | None = None
    """Moments of the first episode in one picture: a new .png file."""
    episodes: int = 1
    """How many, one after the other."""
    member: int | None = None
    """Which one; by default the selected."""
    seed: int = SEED
    """Of actions and environment; equal seeds give equal pictures."""
    shown: Shown = Shown()

    def run(self) -> None:
        files = [path for path in (self.out, self.strip) if path is not None]
        if not files:
            raise InputError("say where to draw: --out FILE.gif, --strip FILE.png or both")
        if there := [path for path in files if path.exists()]:
            raise InputError(f"{there[0]} exists; delete it or choose another name")
        run = load_run(self.folder)
        env = environment_of(run.request["dataset"]["origin"])
        with self.shown.progress() as progress, listening(progress):
            render(
                run,
                env,
                self.out,
                strip=self.strip,
                episodes=self.episodes,
                seed=self.seed,
                member=self.member,
            )
        sizes = {str(path): path.stat().st_size for path in files}
        self.shown.answer(
            {"files": sizes}, lambda: [f"{path}: {size:,} bytes" for path, size in sizes.items()]
        )
