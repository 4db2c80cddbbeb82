"""Training from a store that stays on disk, beside the same with all of it in memory.

17 observations, 6 actions, 3 rewards, episodes of 200 steps. Speed: on a size where both fit, in one
process, updates from memory and from the disk take turns of four chunks; the median of the turns' ratios
counts, of the clock's seconds and of the processor's, which other programs hardly change. Memory: a whole
training from the disk in a process of its own, mapped pages included.

python benchmarks/streaming.py [--steps 10000000] [--both 1000000] [--turns 7] [--out OUT.json]
"""

import argparse
import datetime
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from aetdice import TrainingConfig, esr, train
from aetdice.data import Episode, load_episodes, save_episodes
from aetdice.files import versions, write_json
from aetdice.learning.checkpointing import Checkpointing
from aetdice.learning.setup import Setup, set_up
from aetdice.learning.source import Source, Streamed, extract, source_of
from aetdice.learning.stages import TrainingState, start
from aetdice.studies.parts import code_commit

LENGTH = 200
WIDTHS = {"observations": 17, "actions": 6, "rewards": 3}
HIDDEN = (256, 256)
CHUNK, CHUNKS = 250, 4


def write_store(path: Path, steps: int) -> None:
    """Random numbers."""
    rng = np.random.default_rng(0)

    def episodes() -> Iterator[Episode]:
        for _ in range(steps // LENGTH):
            yield Episode(
                rng.random((LENGTH + 1, WIDTHS["observations"]), np.float32),
                rng.random((LENGTH, WIDTHS["actions"]), np.float32),
                rng.random((LENGTH, WIDTHS["rewards"])),
                False,
                True,
            )

    save_episodes(path, episodes())


def settings(streaming: bool, updates: int) -> TrainingConfig:
    changed = {
        "network.hidden": HIDDEN,
        "dual.steps": updates,
        "extraction.steps": updates,
        "trainer.streaming": streaming,
        "trainer.chunk": CHUNK,
    }
    return TrainingConfig().adapted(changed)


def compare_speed(path: Path, turns: int) -> dict[str, Any]:
    """Seconds per turn of both sources, by stage, and the median ratio of their speeds."""
    updates = CHUNK * CHUNKS * (turns + 2)
    sources: dict[str, tuple[Source, Setup, TrainingState]] = {}
    for name, streaming in (("resident", False), ("streamed", True)):
        setup = set_up(
            load_episodes(path, verify=False),
            [esr()],
            algorithm="aetdice",
            horizon=None,
            sweeps={"beta": 0.1},
            learning_rate=1e-3,
            seed=0,
            config=settings(streaming, updates),
        )
        sources[name] = source_of(setup), setup, start(setup, Checkpointing(None, None, ()))
    found: dict[str, Any] = {}
    for stage in ("values", "cloning"):
        runs = {name: _Stage(stage, *given) for name, given in sources.items()}
        for run in runs.values():
            run.turn()  # compiles
        seconds: dict[str, list[float]] = {name: [] for name in runs}
        busy: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(turns):
            for name, run in runs.items():
                begun = time.process_time()
                seconds[name].append(run.turn())
                busy[name].append(time.process_time() - begun)
        ratios = [a / b for a, b in zip(seconds["resident"], seconds["streamed"], strict=True)]
        work = [a / b for a, b in zip(busy["resident"], busy["streamed"], strict=True)]
        found[stage] = {
            "updates_per_second": {
                name: round(CHUNK * CHUNKS / statistics.median(each), 1) for name, each in seconds.items()
            },
            "streamed_to_resident": round(statistics.median(ratios), 3),
            "ratios": [round(ratio, 3) for ratio in sorted(ratios)],
            "streamed_to_resident_cpu": round(statistics.median(work), 3),
            "cpu_ratios": [round(ratio, 3) for ratio in sorted(work)],
        }
        print(stage, json.dumps(found[stage]), flush=True)
    return found


class _Stage:
    """One stage of training from one source."""

    def __init__(self, stage: str, source: Source, setup: Setup, state: TrainingState) -> None:
        self.stage, self.source, self.step = stage, source, 0
        self.states: Any = state.values if stage == "values" else state.policies
        self.draws = None if stage == "values" else extract(source, setup, state.values)[1]

    def turn(self) -> float:
        """Seconds of so many updates, what is read ahead included."""
        begun = time.perf_counter()
        for _ in range(CHUNKS):
            steps = jnp.arange(self.step, self.step + CHUNK)
            self.step += CHUNK
            if self.stage == "values":
                self.states = self.source.train_values(self.states, steps)
            else:
                self.states = self.source.train_policies(self.states, self.draws, steps)
            jax.block_until_ready(jax.tree.leaves(self.states))
        if isinstance(self.source, Streamed):
            for future in self.source.reader.coming.values():
                future.result()
        return time.perf_counter() - begun


def measure(path: str, updates: int) -> None:
    """In a process of its own, because memory is that of a process."""
    seen: dict[str, list[tuple[int, float]]] = {}
    begun = time.perf_counter()

    def progress(stage: str, step: int, total: int, metrics: Any) -> None:
        del total, metrics
        seen.setdefault(stage, []).append((step, time.perf_counter()))

    dataset = load_episodes(path, verify=False)
    train(dataset, esr(), beta=0.1, config=settings(True, updates), progress=progress)
    found: dict[str, Any] = {"seconds": round(time.perf_counter() - begun, 1)}
    for stage in ("values", "cloning"):
        (first, started), (last, ended) = seen[stage][0], seen[stage][-1]
        found[f"{stage}_per_second"] = round((last - first) / (ended - started), 1)
    found["cpu_seconds"] = round(time.process_time(), 1)
    found["peak_mib"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    print(json.dumps(found))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=10_000_000)
    parser.add_argument("--both", type=int, default=1_000_000)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--updates", type=int, default=500)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--measure")
    options = parser.parse_args()
    if options.measure:
        measure(options.measure, options.updates)
        return
    raw = options.steps * (4 * (WIDTHS["observations"] + WIDTHS["actions"]) + 8 * WIDTHS["rewards"]) / 2**20
    found: dict[str, Any] = {"widths": WIDTHS, "hidden": HIDDEN, "batch": TrainingConfig().dual.batch}
    with tempfile.TemporaryDirectory() as folder:
        small, large = (Path(folder) / name for name in ("small", "large"))
        write_store(large, options.steps)
        command = [sys.executable, __file__, "--measure", str(large), "--updates", str(options.updates)]
        answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        print(answer.strip(), flush=True)
        found["memory"] = {
            "steps": options.steps,
            "updates_per_stage": options.updates,
            "raw_mib": round(raw),
            **json.loads(answer),
        }
        write_store(small, options.both)
        found["speed"] = {"steps": options.both, **compare_speed(small, options.turns)}
    if options.out:
        machine = {"cores": os.cpu_count(), "machine": platform.machine(), "load": os.getloadavg()[0]}
        when = {"date": datetime.date.today().isoformat(), "commit": code_commit()}
        write_json(options.out, {**found, **machine, **when, "versions": versions()})


if __name__ == "__main__":
    main()
