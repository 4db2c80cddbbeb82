"""Peak memory of a whole training: the device's, beside the bytes of the data and of the members' state.

    python benchmarks/peak.py --transitions 10_000_000 --members 45 --out peak.json

Random episodes of the form of pointmaze-2obj; AETDICE for a sweep over β, few updates of both stages, each of
the form it has in a long training, the exact refit, weighing and diagnostics over all steps. Beside the peak
stands what is held after each stage. On an accelerator the peak is the allocator's own. A CPU keeps no such
count: there it is the process's peak resident memory after set-up, less what was resident then, plus the
data; it holds programs, compilers and NumPy's arrays too, so it is an upper bound.
"""

import argparse
import datetime
import resource
import time
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

from aetdice import Episodes, TrainingConfig, esr
from aetdice.files import versions, write_json
from aetdice.learning.checkpointing import Checkpointing
from aetdice.learning.setup import set_up
from aetdice.learning.source import source_of
from aetdice.learning.stages import start, through_stages

LENGTH, OBSERVATION, ACTION, OBJECTIVES = 300, 4, 2, 2


def episodes(transitions: int) -> Episodes:
    """Random numbers."""
    rng, count = np.random.default_rng(0), max(1, round(transitions / LENGTH))
    return Episodes(
        observations=rng.random((count * (LENGTH + 1), OBSERVATION), np.float32),
        actions=2 * rng.random((count * LENGTH, ACTION), np.float32) - 1,
        rewards=rng.random((count * LENGTH, OBJECTIVES)) / LENGTH,
        lengths=np.full(count, LENGTH),
        terminated=np.zeros(count, bool),
        truncated=np.ones(count, bool),
        objectives=("one", "other"),
    )


def size(tree: Any) -> int:
    """Bytes of a tree's arrays."""
    return sum(leaf.nbytes for leaf in jax.tree.leaves(tree) if eqx.is_array(leaf))


class Peak:
    """The most memory since it was made, of the device or else of the process."""

    def __init__(self, data: int) -> None:
        self.by_device = self._of_device() is not None
        if not self.by_device:
            Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
            self.base = self._status("VmRSS") - data

    @property
    def measure(self) -> str:
        return "allocator of the device" if self.by_device else "resident memory beyond set-up, plus data"

    def __call__(self) -> int:
        found = self._of_device()
        return self._status("VmHWM") - self.base if found is None else found

    @staticmethod
    def _of_device() -> int | None:
        stats = jax.local_devices()[0].memory_stats()
        return None if stats is None else int(stats["peak_bytes_in_use"])

    @staticmethod
    def _status(name: str) -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def measured(
    transitions: int, members: int, hidden: tuple[int, ...], updates: int, refit: str
) -> dict[str, Any]:
    begun = time.perf_counter()
    settings = {
        "network.hidden": hidden,
        "dual.steps": updates,
        "dual.refit": refit,
        "extraction.steps": updates,
        "trainer.holdout": 0.0,
        "trainer.report": 0.0,
    }
    setup = set_up(
        episodes(transitions),
        [esr(threshold=0.01)],
        algorithm="aetdice",
        horizon=LENGTH,
        sweeps={"beta": np.geomspace(0.01, 1.0, members)},
        learning_rate=3e-4,
        seed=0,
        config=TrainingConfig().adapted(settings),
    )
    data, stages = size((setup.training, setup.probe)), {}
    peak = Peak(data)

    def progress(stage: str, step: int, total: int, metrics: Any) -> None:
        del metrics
        if step == total:
            held = size(jax.live_arrays())
            seconds = round(time.perf_counter() - begun, 1)
            stages[stage] = {"peak_bytes": peak(), "held_bytes": held, "seconds": seconds}
            print(stage, stages[stage], flush=True)

    checkpointing: Checkpointing[Any] = Checkpointing(None, progress, [])
    state = start(setup, checkpointing)
    progress("set-up", 1, 1, {})
    held = size(state)
    source = source_of(setup)
    state, _, _ = through_stages(state, setup, source, checkpointing)
    jax.block_until_ready(jax.tree.leaves(state))
    source.close()
    found = peak()
    return {
        "transitions": setup.training.steps.count,
        "members": members,
        "hidden": list(hidden),
        "updates": updates,
        "refit": refit,
        "data_bytes": data,
        "data_bytes_per_step": round(data / setup.training.steps.count, 1),
        "state_bytes": held,
        "peak_bytes": found,
        "peak_to_data_and_state": round(found / (data + held), 3),
        "peak_without_state_to_data": round((found - held) / data, 3),
        "measure": peak.measure,
        "host_peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "stages": stages,
        "seconds": round(time.perf_counter() - begun, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--transitions", type=int, default=200_000)
    parser.add_argument("--members", type=int, default=4)
    parser.add_argument("--hidden", type=int, nargs="+", default=[256, 256])
    parser.add_argument("--updates", type=int, default=1_000, help="of each stage")
    parser.add_argument("--refit", default="constants", choices=["constants", "none"])
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    found = measured(given.transitions, given.members, tuple(given.hidden), given.updates, given.refit)
    made = {
        "device": jax.local_devices()[0].device_kind,
        "date": datetime.date.today().isoformat(),
        "versions": versions(),
    }
    write_json(given.out, {**found, **made})
    print({name: value for name, value in found.items() if name != "stages"})


if __name__ == "__main__":
    main()
