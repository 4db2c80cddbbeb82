"""Memory per policy: what acts, what a file takes, and what a member holds while it is trained.

    python benchmarks/memory.py --out benchmarks/results/memory.json

Counted from the arrays themselves, on any machine: a policy's weights, and of a member of a population
ν with its average and Adam's two moments, and the policy with its own two. Batches come on top.
"""

import argparse
import datetime
import tempfile
from pathlib import Path
from typing import Any

import equinox as eqx
import jax

from aetdice.config import TrainingConfig
from aetdice.datasets import load_dataset
from aetdice.evaluation import Policy
from aetdice.files import versions, write_json
from aetdice.learning.checkpointing import Checkpointing
from aetdice.learning.population import member
from aetdice.learning.setup import set_up
from aetdice.learning.stages import start
from aetdice.objectives import ser
from aetdice.studies.parts import code_commit

NETWORKS: dict[str, tuple[int, ...]] = {
    "2×128": (128, 128),
    "2×256": (256, 256),
    "3×768": (768,) * 3,
    "3×1024": (1024,) * 3,
    "4×512": (512,) * 4,
}
EPISODES = 20
"""Enough for encoders; the data's own memory is counted apart."""


def size(tree: Any) -> tuple[int, int]:
    """Numbers and bytes of a tree's arrays."""
    leaves = [leaf for leaf in jax.tree.leaves(tree) if eqx.is_array(leaf)]
    return sum(leaf.size for leaf in leaves), sum(leaf.nbytes for leaf in leaves)


def row(hidden: tuple[int, ...]) -> dict[str, Any]:
    """One member of AETDICE for SER on pointmaze-2obj."""
    dataset = load_dataset("pointmaze-2obj", episodes=EPISODES)
    features = {"network.observation_fourier": 3, "network.fourier": 3, "network.hidden": hidden}
    setup = set_up(
        dataset,
        [ser()],
        algorithm="aetdice",
        horizon=300,
        sweeps={"beta": 1e-3},
        learning_rate=1e-3,
        seed=0,
        config=TrainingConfig().adapted(features),
    )
    state = start(setup, Checkpointing(None, None, []))
    policy = member(state.policies, 0)
    numbers, weights = size(policy.policy.net)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.npz"
        Policy(policy.policy, {}, None).save(path)
        file = path.stat().st_size
    return {
        "policy_parameters": numbers,
        "policy_bytes": weights,
        "file_bytes": file,
        "training_bytes": size(member(state.values, 0))[1] + size(policy)[1],
        "data_bytes_per_step": size(setup.training)[1] / setup.training.steps.count,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    rows = {name: row(hidden) for name, hidden in NETWORKS.items()}
    made = {"commit": code_commit(), "date": datetime.date.today().isoformat(), "versions": versions()}
    write_json(arguments.out, {"env": "pointmaze-2obj", "rows": rows, **made})
    for name, found in rows.items():
        print(name, found)


if __name__ == "__main__":
    main()
