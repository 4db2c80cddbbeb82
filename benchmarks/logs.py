"""Seconds and peak memory of reading a log, of looking it over, and of making a store of it block by block.

17 observations, 6 actions, 3 rewards, episodes of 200 steps.

python benchmarks/logs.py [--steps 10000000] [--only convert] [--out OUT.json]
"""

import argparse
import datetime
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from aetdice import load_dataset
from aetdice.cli import main as main_of_command
from aetdice.data.doctor import examine
from aetdice.files import versions, write_json
from aetdice.studies.parts import code_commit

LENGTH = 200
MEASURES = ("read", "doctor", "convert")
WIDTHS = {"obs": 17, "action": 6, "reward": 3}


def write_log(path: Path, steps: int) -> None:
    """Random numbers in episodes of 200 steps."""
    import pyarrow as pa
    from pyarrow import csv, feather, parquet

    rng = np.random.default_rng(0)
    columns = {"episode": np.arange(steps) // LENGTH, "step": np.arange(steps) % LENGTH}
    for role, width in WIDTHS.items():
        dtype = np.float64 if role == "reward" else np.float32
        columns |= {f"{role}_{i}": rng.random(steps).astype(dtype) for i in range(width)}
    columns["truncated"] = columns["step"] == LENGTH - 1
    write = {".csv": csv.write_csv, ".parquet": parquet.write_table, ".feather": feather.write_feather}
    write[path.suffix](pa.table(columns), str(path))


def measure(what: str, path: str) -> None:
    """In a process of its own, because memory is that of a process."""
    begun = time.perf_counter()
    if what == "read":
        load_dataset(path)
    elif what == "doctor":
        examine(path)
    else:
        main_of_command(["convert", path, str(Path(path).with_suffix("")), "--quiet"])
    seconds, busy = time.perf_counter() - begun, time.process_time()
    print(json.dumps({"seconds": round(seconds, 1), "cpu_seconds": round(busy, 1), "peak_mib": peak_mib()}))


def peak_mib() -> int:
    """Of this process since it began; what `getrusage` says may be the peak of the one that started it."""
    status = Path("/proc/self/status")
    if status.exists():
        found = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(found.split()[1]) // 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=10_000_000)
    parser.add_argument("--only", choices=MEASURES)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--measure", nargs=2)
    options = parser.parse_args()
    if options.measure:
        measure(*options.measure)
        return
    raw = options.steps * (4 * (WIDTHS["obs"] + WIDTHS["action"]) + 8 * WIDTHS["reward"]) / 2**20
    found: dict[str, object] = {"steps": options.steps, "widths": WIDTHS, "raw_mib": round(raw)}
    with tempfile.TemporaryDirectory() as folder:
        for suffix in ("parquet", "feather", "csv"):
            path = Path(folder) / f"log.{suffix}"
            write_log(path, options.steps)
            for what in MEASURES if options.only is None else [options.only]:
                command = [sys.executable, __file__, "--measure", what, str(path)]
                answer = subprocess.run(
                    command,
                    capture_output=True,
                    text=True,
                    check=True,
                    env={**os.environ, "AETDICE_CACHE": "off"},
                ).stdout  # with a cache, large tables are not read but made into stores there
                found[f"{suffix}_{what}"] = json.loads(answer.splitlines()[-1])
                print(suffix, what, found[f"{suffix}_{what}"], flush=True)
            path.unlink()
            shutil.rmtree(path.with_suffix(""), ignore_errors=True)
    if options.out:
        machine = {"cores": os.cpu_count(), "machine": platform.machine(), "load": os.getloadavg()[0]}
        when = {"date": datetime.date.today().isoformat(), "commit": code_commit()}
        write_json(options.out, {**found, **machine, **when, "versions": versions()})


if __name__ == "__main__":
    main()
