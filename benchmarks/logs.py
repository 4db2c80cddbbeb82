"""Seconds and peak memory of reading a log and of looking it over: 17 observations, 6 actions, 3 rewards.

python benchmarks/logs.py [--steps 10000000] [--out OUT.json]
"""

import argparse
import datetime
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from aetdice import load_dataset
from aetdice.data.doctor import examine
from aetdice.files import versions, write_json
from aetdice.studies.parts import code_commit

LENGTH = 200
WIDTHS = {"obs": 17, "action": 6, "reward": 3}


def write_log(path: Path, steps: int) -> None:
    """Random numbers in episodes of 200 steps."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    rng = np.random.default_rng(0)
    columns = {"episode": np.arange(steps) // LENGTH, "step": np.arange(steps) % LENGTH}
    for role, width in WIDTHS.items():
        dtype = np.float64 if role == "reward" else np.float32
        columns |= {f"{role}_{i}": rng.random(steps).astype(dtype) for i in range(width)}
    columns["truncated"] = columns["step"] == LENGTH - 1
    write = csv.write_csv if path.suffix == ".csv" else parquet.write_table
    write(pa.table(columns), path)


def measure(what: str, path: str) -> None:
    """In a process of its own, because memory is that of a process."""
    begun = time.perf_counter()
    if what == "read":
        load_dataset(path)
    else:
        examine(path)
    seconds, busy = time.perf_counter() - begun, time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": round(seconds, 1), "cpu_seconds": round(busy, 1), "peak_mib": round(peak)}))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=10_000_000)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--measure", nargs=2)
    options = parser.parse_args()
    if options.measure:
        measure(*options.measure)
        return
    raw = options.steps * (4 * (WIDTHS["obs"] + WIDTHS["action"]) + 8 * WIDTHS["reward"]) / 2**20
    found: dict[str, object] = {"steps": options.steps, "widths": WIDTHS, "raw_mib": round(raw)}
    with tempfile.TemporaryDirectory() as folder:
        for suffix in ("parquet", "csv"):
            path = Path(folder) / f"log.{suffix}"
            write_log(path, options.steps)
            for what in ("read", "doctor"):
                command = [sys.executable, __file__, "--measure", what, str(path)]
                answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                found[f"{suffix}_{what}"] = json.loads(answer)
                print(suffix, what, answer.strip())
            path.unlink()
    if options.out:
        machine = {"cores": os.cpu_count(), "machine": platform.machine(), "load": os.getloadavg()[0]}
        when = {"date": datetime.date.today().isoformat(), "commit": code_commit()}
        write_json(options.out, {**found, **machine, **when, "versions": versions()})


if __name__ == "__main__":
    main()
