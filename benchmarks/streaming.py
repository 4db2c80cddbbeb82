"""Training from a store that stays on disk, beside the same with all of it in memory.

17 observations, 6 actions, 3 rewards, episodes of 200 steps. Speed is updates per second between the first
and the last chunk of each stage; on a size where both fit, runs of the two take turns and the median ratio
counts. Peak memory is that of the process, mapped pages included.

python benchmarks/streaming.py [--steps 10000000] [--both 1000000] [--updates 1500] [--rounds 3] [--out O.json]
"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from aetdice import TrainingConfig, esr, train
from aetdice.data import Episode, load_episodes, save_episodes
from aetdice.files import versions, write_json

LENGTH = 200
WIDTHS = {"observations": 17, "actions": 6, "rewards": 3}
HIDDEN = (256, 256)


def write_store(path: Path, steps: int) -> None:
    """Random numbers."""
    rng = np.random.default_rng(0)

    def episodes() -> Any:
        for _ in range(steps // LENGTH):
            yield Episode(
                rng.random((LENGTH + 1, WIDTHS["observations"]), np.float32),
                rng.random((LENGTH, WIDTHS["actions"]), np.float32),
                rng.random((LENGTH, WIDTHS["rewards"])),
                False,
                True,
            )

    save_episodes(path, episodes())


def measure(streaming: bool, path: str, updates: int) -> None:
    """In a process of its own, because memory is that of a process."""
    seen: dict[str, list[tuple[int, float]]] = {}
    begun = time.perf_counter()

    def progress(stage: str, step: int, total: int, metrics: Any) -> None:
        del total, metrics
        seen.setdefault(stage, []).append((step, time.perf_counter()))

    settings = {
        "network.hidden": HIDDEN,
        "dual.steps": updates,
        "extraction.steps": updates,
        "trainer.streaming": streaming,
        "trainer.chunk": 250,
    }
    train(
        load_episodes(path, verify=False),
        esr(),
        beta=0.1,
        config=TrainingConfig().adapted(settings),
        progress=progress,
    )
    found: dict[str, Any] = {"seconds": round(time.perf_counter() - begun, 1)}
    for stage in ("values", "cloning"):
        (first, started), (last, ended) = seen[stage][0], seen[stage][-1]
        found[f"{stage}_per_second"] = round((last - first) / (ended - started), 1)
    found["passes_seconds"] = round(
        seen["cloning"][0][1] - seen["values"][-1][1], 1
    )  # refit, weights, and the first chunk of cloning
    found["peak_mib"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    print(json.dumps(found))


def run(streaming: bool, path: Path, updates: int) -> dict[str, Any]:
    how = "streamed" if streaming else "resident"
    command = [sys.executable, __file__, "--measure", how, str(path), "--updates", str(updates)]
    answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    print(how, path.name, answer.strip(), flush=True)
    return dict(json.loads(answer))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=10_000_000)
    parser.add_argument("--both", type=int, default=1_000_000)
    parser.add_argument("--updates", type=int, default=1_500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--measure", nargs=2)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure[0] == "streamed", options.measure[1], options.updates)
        return
    found: dict[str, Any] = {"widths": WIDTHS, "hidden": HIDDEN, "updates": options.updates}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        small, large = (Path(folder) / name for name in ("small", "large"))
        write_store(small, options.both)
        rounds = [
            {how: run(how == "streamed", small, options.updates) for how in ("resident", "streamed")}
            for _ in range(options.rounds)
        ]
        ratios = {
            stage: [each["streamed"][stage] / each["resident"][stage] for each in rounds]
            for stage in ("values_per_second", "cloning_per_second")
        }
        found["both"] = {
            "steps": options.both,
            "rounds": rounds,
            "speed_ratios": {stage: round(statistics.median(values), 3) for stage, values in ratios.items()},
        }
        print(found["both"]["speed_ratios"])
        write_store(large, options.steps)
        raw = (
            options.steps * (4 * (WIDTHS["observations"] + WIDTHS["actions"]) + 8 * WIDTHS["rewards"]) / 2**20
        )
        found["streamed"] = {
            "steps": options.steps,
            "raw_mib": round(raw),
            **run(True, large, options.updates),
        }
    if options.out:
        machine = {"cores": os.cpu_count(), "machine": platform.machine()}
        write_json(options.out, {**found, **machine, "versions": versions()})


if __name__ == "__main__":
    main()
