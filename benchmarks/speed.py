"""Updates per second of the learner, alone and as a population, beside d3rlpy where it is at hand.

    python benchmarks/speed.py --out RESULT.json                       # the device JAX finds
    python benchmarks/speed.py --hidden 256 256 --members 1 --peer PYTHON --out RESULT.json

One *step* is one update of ν (or of the critics) and one of the policy, on a batch of 256 from the
PointMaze dataset (450,000 steps of 4 observations, horizon 300, 12 actions). PYTHON is an interpreter
that has d3rlpy; its IQL runs in the same session with networks and batches of the same size, on random
data of the same shape. Timings leave out compilation; the best of several chunks counts, the median is
reported beside it.
"""

import argparse
import datetime
import json
import subprocess
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console
from updates import timed_updates

from aetdice.config import TrainingConfig
from aetdice.envs import point_maze_2obj
from aetdice.envs.point_maze.collection import collect_point_maze
from aetdice.files import versions, write_json
from aetdice.learning.setup import readable
from aetdice.report.tables import columns
from aetdice.studies.parts import code_commit

PEER = Path(__file__).with_name("peer_d3rlpy.py")
CHUNKS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--hidden", type=int, nargs="+", default=[768, 768, 768])
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--members", type=int, nargs="+", default=[1, 45])
    parser.add_argument("--steps", type=int, default=300, help="updates per timed chunk")
    parser.add_argument("--precision", nargs="+", default=["tensorfloat32", "bfloat16", "highest"])
    parser.add_argument("--time", nargs="+", default=["input", "heads", "augmented"])
    parser.add_argument("--algorithm", nargs="+", default=["aetdice", "esr-iql"])
    parser.add_argument("--peer", help="a Python that has d3rlpy")
    arguments = parser.parse_args()
    maze = point_maze_2obj()
    dataset = collect_point_maze(maze)
    rows: list[dict[str, Any]] = []
    for algorithm, when, precision, members in _cases(arguments):
        stages = ("dual", "iql", "extraction")
        config = TrainingConfig().adapted(
            {
                "network.hidden": tuple(arguments.hidden),
                **{f"{stage}.batch": arguments.batch for stage in stages},
                **{f"{stage}.steps": 10**6 for stage in stages},
                "ablation.time": when,
                "trainer.precision": precision,
            }
        )
        rows.append(
            {
                "algorithm": algorithm,
                "time": when,
                "precision": precision,
                "members": members,
                **_measure(dataset, algorithm, readable(config, algorithm), members, arguments.steps),
            }
        )
        print(json.dumps(rows[-1]), flush=True)
        _write(arguments, rows)
    if arguments.peer:
        rows.append(_peer(arguments))
        _write(arguments, rows)
    Console(width=120).print(_table(rows, arguments))


def _write(arguments: argparse.Namespace, rows: list[dict[str, Any]]) -> None:
    """After every row: a measurement that is cut off keeps what it has."""
    facts = {"hidden": arguments.hidden, "batch": arguments.batch, "date": datetime.date.today().isoformat()}
    device = jax.devices()[0].device_kind
    write_json(
        arguments.out,
        {**facts, "device": device, "rows": rows, "commit": code_commit(), "versions": versions()},
    )


def _cases(arguments: argparse.Namespace) -> list[tuple[str, Any, Any, int]]:
    """Heads matter to AETDICE only."""
    return [
        (algorithm, when, precision, members)
        for precision in arguments.precision
        for algorithm in arguments.algorithm
        for when in (arguments.time if algorithm == "aetdice" else ["input"])
        for members in arguments.members
    ]


def _measure(
    dataset: Any, algorithm: str, config: TrainingConfig, members: int, steps: int
) -> dict[str, float]:
    found = timed_updates(dataset, algorithm, config, members, chunk=steps, chunks=CHUNKS)
    together = [members / (a + b) for a, b in zip(found.value, found.cloning, strict=True)]
    return {
        "policy_steps": max(together),
        "policy_steps_median": float(np.median(together)),
        "value_steps": members / min(found.value),
        "cloning_steps": members / min(found.cloning),
    }


def _peer(arguments: argparse.Namespace) -> dict[str, Any]:
    sizes = [str(size) for size in arguments.hidden]
    command = [arguments.peer, str(PEER), "--hidden", *sizes, "--batch", str(arguments.batch)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    return {"algorithm": "d3rlpy IQL", "members": 1, **json.loads(answer.stdout.splitlines()[-1])}


def _table(rows: list[dict[str, Any]], arguments: argparse.Namespace) -> Any:
    title = f"steps per second, {'×'.join(map(str, arguments.hidden))}, batch {arguments.batch}"
    table = columns(
        title, "algorithm", "time", "precision", "P", "each", "together", "first stage", "cloning"
    )
    for row in rows:
        together = row["policy_steps"]
        table.add_row(
            row["algorithm"],
            row.get("time", ""),
            row.get("precision", ""),
            str(row["members"]),
            f"{together / row['members']:,.0f}",
            f"{together:,.0f}",
            *(f"{row[key]:,.0f}" if key in row else "" for key in ("value_steps", "cloning_steps")),
        )
    return table


if __name__ == "__main__":
    main()
