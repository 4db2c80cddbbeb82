"""Studies of seconds, which workers know by name: a taxi, and a part that kills its own process once."""

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

from aetdice import TrainingConfig
from aetdice.progress import Progress
from aetdice.studies import fair_taxi
from aetdice.studies.parts import Part
from aetdice.studies.study import Effort, Population, Study, with_value_stage

TAXI = "support.tiny_studies:taxi"
LAYOUT: dict[str, Any] = {
    "size": 3, "origins": ((0, 0), (2, 2)), "destinations": ((0, 1), (2, 1)), "start": (1, 1), "horizon": 6,
}  # fmt: skip
CONFIG = with_value_stage(
    TrainingConfig().adapted(
        {
            "network.hidden": (4,),
            "network.fourier": 1,
            "dual.refit": "none",
            "extraction.steps": 20,
            "extraction.batch": 8,
            "trainer.chunk": 20,
            "trainer.holdout": 0.25,
        }
    ),
    20,
    8,
)
SURVIVED = "survived"


def taxi(quick: bool) -> Study:
    """AETDICE for ESR and SER, rolled out apart."""
    effort = Effort(seeds=(0,) if quick else (0, 1), episodes=20, dataset=20, grids={}, config=CONFIG)
    rows = fair_taxi.rows_of((0.0, 1.0), "")
    population = Population("aetdice", "aetdice", rows, {"beta": (1.0, 0.1)}, CONFIG)
    table = fair_taxi.taxi_table("tiny-taxi", effort, (0.0, 1.0), (population,), **LAYOUT)
    return Study("taxi", (replace(table, separate=True),), parts=(Part("fatal", {}, fatal),))


def fatal(folder: Path, progress: Progress) -> dict[str, Any]:
    """As if memory had run out, the first time."""
    del progress
    if not (folder / SURVIVED).exists():
        (folder / SURVIVED).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"survived": True}
