"""How fast this is, and how that grows: one command, one JSON file. `make bench`, or `make bench QUICK=1`.

    python benchmarks/bench.py [--quick] [--peer PYTHON] --out RESULT.json

Measured, each case in a process of its own (so that memory and compilation are its own): the roofline of
the machine; steps per second, alone and together, and how they, compile time and memory grow with batch,
width, horizon, objectives, population and dataset; the same for d3rlpy's IQL in turns with ours, where
PYTHON has it; and the seconds from `train` to a policy that closes 97 % of Fair-Taxi's ESR gap, compiling
included, with and without programs kept from before. A step is one update of ν and one of the policy.
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
from pathlib import Path
from typing import Any

from plan import plan

PEER = Path(__file__).with_name("peer_d3rlpy.py")
BASE = {"hidden": 256, "batch": 256, "horizon": 200, "objectives": 2, "members": 1, "steps": 200_000}
"""Two layers of 256, as the recipes have them; random data of 17 observations and 6 actions."""
GROWTH: dict[str, tuple[int, ...]] = {
    "batch": (64, 256, 1024, 4096),
    "hidden": (64, 128, 256, 512),
    "horizon": (50, 200, 1000),
    "objectives": (2, 4, 8),
    "members": (1, 2, 4, 8, 16),
    "steps": (20_000, 200_000, 2_000_000),
}
QUICK: dict[str, tuple[int, ...]] = {"batch": (256, 1024), "hidden": (128, 256), "members": (1, 8)}
OBSERVATIONS, ACTIONS = 17, 6
QUALITY = 0.97
EPISODES = 4000
TURNS = 3


def measure_case(case: dict[str, int], chunks: int) -> dict[str, Any]:
    """One row: speed, compile time and memory of one setting."""
    import numpy as np
    from updates import timed_updates

    from aetdice import Episodes, TrainingConfig

    rng, steps, horizon = np.random.default_rng(0), case["steps"], case["horizon"]
    episodes = steps // horizon
    truncated = np.ones(episodes, bool)
    dataset = Episodes(
        observations=rng.standard_normal((steps + episodes, OBSERVATIONS), np.float32),
        actions=rng.uniform(-1, 1, (steps, ACTIONS)).astype(np.float32),
        rewards=rng.random((steps, case["objectives"])),
        lengths=np.full(episodes, horizon),
        terminated=~truncated,
        truncated=truncated,
        objectives=tuple(f"r{i}" for i in range(case["objectives"])),
    )
    settings = {
        "network.hidden": (case["hidden"],) * 2,
        "dual.batch": case["batch"],
        "extraction.batch": case["batch"],
        "dual.steps": 10**6,
        "extraction.steps": 10**6,
    }
    work = case["members"] * case["batch"] * case["hidden"] ** 2 / (256 * 256**2)
    chunk = int(np.clip(200 / work, 10, 400))
    before = time.process_time()
    found = timed_updates(
        dataset, "aetdice", TrainingConfig().adapted(settings), case["members"], chunk=chunk, chunks=chunks
    )
    seconds = min(found.value) + min(found.cloning)
    return {
        **case,
        "policy_steps": round(case["members"] / seconds, 1),
        "policy_steps_median": round(
            case["members"] / (statistics.median(found.value) + statistics.median(found.cloning)), 1
        ),
        "value_steps": round(case["members"] / min(found.value), 1),
        "cloning_steps": round(case["members"] / min(found.cloning), 1),
        "compile_seconds": round(found.compile_seconds, 2),
        "cpu_seconds": round(time.process_time() - before, 1),
        "gflops": round(1e-9 * found.flops / seconds, 1),
        "gbytes": round(1e-9 * found.traffic / seconds, 2),
        "state_mib": round(found.state_bytes / 2**20, 2),
        "data_mib": round(found.data_bytes / 2**20, 2),
        "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def time_to_quality(effort: str) -> dict[str, Any]:
    """From `train` with nothing set to its policy, and how much of the gap that closes."""
    import aetdice

    started = time.perf_counter()
    env, dataset = aetdice.make_env("fair-taxi"), aetdice.load_dataset("fair-taxi")
    loaded = time.perf_counter()
    run = aetdice.train(dataset, aetdice.esr(), effort=effort, progress=False)
    trained = time.perf_counter()
    learned, twin = aetdice.evaluate(run, env, episodes=EPISODES)
    optimum = aetdice.solve(aetdice.TabularMOMDP.from_environment(env), aetdice.esr()).value
    gap = (learned.score - twin.score) / (optimum - twin.score)
    return {
        "effort": effort,
        "seconds": round(trained - loaded, 1),
        "data_seconds": round(loaded - started, 1),
        "cpu_seconds": round(time.process_time(), 1),
        "gap_closed": round(gap, 4),
        "reached": gap >= QUALITY,
        "optimum": optimum,
    }


def measure_roofline(quick: bool) -> dict[str, Any]:
    import jax
    from roofline import roofline

    return {"device": jax.devices()[0].device_kind, **roofline((256, 512, 1024, *([] if quick else [2048])))}


def apart(section: str, given: dict[str, Any], **environment: str) -> dict[str, Any]:
    """A section in a process of its own."""
    command = [sys.executable, __file__, "--section", section, "--given", json.dumps(given)]
    done = subprocess.run(
        command, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(section, json.dumps(given), json.dumps(found), flush=True)
    return found


def beside_peer(python: str) -> dict[str, Any]:
    """Ours and d3rlpy's IQL in turns, at equal widths and batch; the median of the turns' ratios."""
    ours, theirs = [], []
    for _ in range(TURNS):
        ours.append(apart("case", {"case": BASE, "chunks": 5})["policy_steps"])
        command = [python, str(PEER), "--hidden", "256", "256", "--batch", "256"]
        answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        theirs.append(round(json.loads(answer.splitlines()[-1])["policy_steps"], 1))
        print("d3rlpy", theirs[-1], flush=True)
    ratios = sorted(round(a / b, 2) for a, b in zip(ours, theirs, strict=True))
    return {"aetdice": ours, "d3rlpy_iql": theirs, "ratios": ratios, "ratio": statistics.median(ratios)}


def quality(quick: bool) -> list[dict[str, Any]]:
    """With nothing compiled before, and with all programs kept."""
    found = []
    for effort in ("quick",) if quick else ("quick", "standard"):
        with tempfile.TemporaryDirectory() as folder:
            kept = {"JAX_COMPILATION_CACHE_DIR": folder, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
            for programs in ("new", "kept"):
                found.append({"programs": programs, **apart("quality", {"effort": effort}, **kept)})
    return found


def bench(quick: bool, peer: str | None) -> dict[str, Any]:
    begun = time.perf_counter()
    machine: dict[str, Any] = {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load_before": round(os.getloadavg()[0], 1),
    }
    found: dict[str, Any] = {"base": BASE, "roofline": apart("roofline", {"quick": quick})}
    chunks = 3 if quick else 5
    base = apart("case", {"case": BASE, "chunks": chunks})
    found["growth"] = {
        name: [
            base if value == BASE[name] else apart("case", {"case": {**BASE, name: value}, "chunks": chunks})
            for value in values
        ]
        for name, values in (QUICK if quick else GROWTH).items()
    }
    for rows in found["growth"].values():
        for row in rows:
            row["share_of_peak"] = round(row["gflops"] / found["roofline"]["peak_gflops"], 3)
            row["share_of_stream"] = round(row["gbytes"] / found["roofline"]["stream_gbytes"], 3)
    found["peer"] = beside_peer(peer) if peer else None
    found["quality"] = quality(quick)
    found["plan"] = plan(found)
    machine["load_after"] = round(os.getloadavg()[0], 1)
    return {**found, "machine": machine, "seconds": round(time.perf_counter() - begun)}


def _has_peer(python: str) -> bool:
    try:
        return (
            subprocess.run([python, "-c", "import d3rlpy"], capture_output=True, check=False).returncode == 0
        )
    except OSError:
        return False


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    named = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer cases: four minutes")
    parser.add_argument("--peer", help="a Python that has d3rlpy")
    parser.add_argument("--note", help="what else the machine was doing")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--section", choices=("roofline", "case", "quality"), help=argparse.SUPPRESS)
    parser.add_argument("--given", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.section:
        sections = {"roofline": measure_roofline, "case": measure_case, "quality": time_to_quality}
        print(json.dumps(sections[options.section](**options.given)))
        return
    if options.out is None:
        parser.error("--out says where the result goes")
    from aetdice.files import versions, write_json
    from aetdice.studies.parts import code_commit

    peer = options.peer if options.peer and _has_peer(options.peer) else None
    found = {"quick": options.quick, "note": options.note, **bench(options.quick, peer)}
    when = {"date": datetime.date.today().isoformat(), "commit": code_commit(), "versions": versions()}
    write_json(options.out, {**found, **when})


if __name__ == "__main__":
    main()
