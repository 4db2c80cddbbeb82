"""What an estimate costs beside the `standard` training of one member: seconds and peak memory.

    python experiments/estimation_cost.py --out RESULT.json

Each part runs in a process of its own, so both compile what they need, and both see the same machine:
read ratios, not seconds.
"""

import argparse
import datetime
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from estimation_cases.case import parts

from aetdice.config import TrainingConfig
from aetdice.data import Episodes
from aetdice.datasets import load_dataset
from aetdice.estimation import estimate
from aetdice.files import versions, write_json
from aetdice.learning.loading import load_run
from aetdice.learning.training import train
from aetdice.objectives import bsr
from aetdice.studies.parts import code_commit

TAXI = {"size": 5, "origins": ((0, 0), (4, 4)), "destinations": ((0, 2), (4, 2)), "start": (2, 2)}
DATA: dict[str, dict[str, Any]] = {
    "pointmaze-2obj": {"horizon": 150, "episodes": 1_000},
    "fair-taxi": {"horizon": 20, "episodes": 2_000, **TAXI},
    "dispatch": {"episodes": 2_000},
}
PARTS = ("train", "estimate")


def data_of(name: str) -> tuple[Episodes, Episodes]:
    return parts(load_dataset(name, seed=0, **DATA[name]), 0)


def measure(part: str, name: str, folder: Path) -> dict[str, float]:
    """One part in this process."""
    seen, log = data_of(name)
    wall, own = time.perf_counter(), time.process_time()
    if part == "train":
        config = TrainingConfig().adapted({"trainer.report": 0.0})
        train(seen, bsr(0.0), config=config, out=folder, progress=False)
    else:
        run = load_run(folder)
        estimate(run.policy, log, bsr(0.0), twin=run.twin, seen=seen)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "seconds": time.perf_counter() - wall,
        "processor_seconds": time.process_time() - own,
        "peak_gigabytes": peak / 2**20,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--part", nargs=3, metavar=("PART", "NAME", "FOLDER"), help="alone, to stdout")
    arguments = parser.parse_args()
    if arguments.part is not None:
        part, name, folder = arguments.part
        print(json.dumps(measure(part, name, Path(folder))))
        return
    rows = []
    for name in DATA:
        with tempfile.TemporaryDirectory() as folder:
            row: dict[str, Any] = {"data": name}
            for part in PARTS:
                command = [sys.executable, __file__, "--part", part, name, f"{folder}/run"]
                told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                row[part] = json.loads(told.splitlines()[-1])
        row["ratio"] = row["estimate"]["processor_seconds"] / row["train"]["processor_seconds"]
        rows.append(row)
        print(row, flush=True)
        write_json(
            arguments.out,
            {
                "rows": rows,
                "command": "python experiments/estimation_cost.py --out RESULT.json",
                "commit": code_commit(),
                "date": datetime.date.today().isoformat(),
                "versions": versions(),
            },
        )


if __name__ == "__main__":
    main()
