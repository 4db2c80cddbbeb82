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
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console

from aetdice.algorithms.sampling import SampleWeights
from aetdice.config import TrainingConfig
from aetdice.envs import point_maze_2obj
from aetdice.envs.point_maze.collection import collect_point_maze
from aetdice.files import versions, write_json
from aetdice.learning.extraction import sample_weights_for
from aetdice.learning.inputs import encoder_for, head_for, onto_device
from aetdice.learning.population import stack, start_policies, start_values, train_policies, train_values
from aetdice.learning.setup import algorithm_for, hyper_of, readable
from aetdice.objectives import esr
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
    if arguments.peer:
        rows.append(_peer(arguments))
    write_json(
        arguments.out,
        {
            "hidden": arguments.hidden,
            "batch": arguments.batch,
            "date": datetime.date.today().isoformat(),
            "device": jax.devices()[0].device_kind,
            "rows": rows,
            "commit": code_commit(),
            "versions": versions(),
        },
    )
    Console(width=120).print(_table(rows, arguments))


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
    horizon = int(dataset.lengths.max())
    learner = algorithm_for(algorithm, horizon, config)
    data = onto_device(dataset, horizon, learner)
    encoder, head = encoder_for(dataset, horizon, learner, config.network), head_for(dataset, config.network)
    objective = esr(threshold=0.01)
    choice = {"objective": objective, "learning_rate": 3e-4, **learner.sweeps}
    hypers, seeds = stack([hyper_of(choice, learner)] * members), jnp.arange(members)
    plain = sample_weights_for([data.steps.weight], 0, data, config)
    weights = SampleWeights(jnp.repeat(plain.cdf, members, axis=0), None)
    rates = jnp.full(members, 3e-4)
    with jax.default_matmul_precision(config.trainer.precision):
        values = start_values(learner, encoder, hypers, seeds, data)
        policies = start_policies(encoder, head, config.network.hidden, seeds)
        value = _seconds(lambda s, k: train_values(learner, s, hypers, seeds, data, k), values, steps)
        policy = _seconds(
            lambda s, k: train_policies(s, weights, rates, seeds, data, k, config.extraction),
            policies,
            steps,
        )
    together = [members / (a + b) for a, b in zip(value, policy, strict=True)]
    return {
        "policy_steps": max(together),
        "policy_steps_median": float(np.median(together)),
        "value_steps": members / min(value),
        "cloning_steps": members / min(policy),
    }


def _seconds(update: Callable[[Any, Any], Any], state: Any, steps: int) -> list[float]:
    """Seconds per update, chunk by chunk, the first (compilation) left out."""
    found = []
    for chunk in range(CHUNKS + 1):
        started = time.perf_counter()
        state = jax.block_until_ready(update(state, jnp.arange(chunk * steps, (chunk + 1) * steps)))
        found.append((time.perf_counter() - started) / steps)
    return found[1:]


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
