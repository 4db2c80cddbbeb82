"""What an update is to a GPU, without a GPU: its kernels, what they move, and XLA's plan of memory.

    pip install "jax[cuda12]"  # in the version of the JAX at hand
    python benchmarks/kernels.py --members 45 --transitions 10_000_000 --out RESULT.json

XLA compiles both stages of AETDICE for an H200 that need not be there, on data of the form of
pointmaze-2obj, of which only the shapes are made. Counted are the kernels of a chunk of updates, drawing and
preparing batches included, divided by the updates; and of each kernel the bytes that it is given and
returns, of slices and gathers those that they take. It is a count and no measurement: XLA tries kernels out
where there is a GPU, and may take others.
"""

import argparse
import datetime
import math
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

os.environ["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_gpu_autotune_level=0"

import equinox as eqx
import jax
import numpy as np
from jax.experimental import topologies
from updates import Population, population_of

from aetdice import Episodes, TrainingConfig
from aetdice.files import versions, write_json
from aetdice.learning.population import train_policies, train_values
from aetdice.studies.parts import code_commit

EPISODES, LENGTH, ACTIONS = 40, 300, 12
H200 = """
gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 threads_per_core_limit: 2048 core_count: 132
  shared_memory_per_block: 49152 shared_memory_per_core: 233472 shared_memory_per_block_optin: 232448
  fpus_per_core: 128 block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: 4800000000000 l2_cache_size: 62914560 clock_rate_ghz: 1.98
  device_memory_size: 150000000000 registers_per_core_limit: 65536 registers_per_block_limit: 65536
  cuda_compute_capability { major: 9 }
}
platform_name: "CUDA" device_description_str: "NVIDIA H200"
dnn_version_info { major: 9 minor: 10 } runtime_version { major: 12 minor: 9 }
"""
BYTES = {"f32": 4, "s32": 4, "u32": 4, "bf16": 2, "f16": 2, "pred": 1, "u8": 1, "s8": 1, "s64": 8, "u64": 8}
FREE = ("parameter", "get-tuple-element", "tuple", "bitcast", "constant", "after-all", "while", "call")
PARTIAL = ("slice", "dynamic-slice", "gather")


class Count(NamedTuple):
    kernels: float
    bytes: float

    def plus(self, other: "Count", times: int = 1) -> "Count":
        return Count(self.kernels + times * other.kernels, self.bytes + times * other.bytes)


def episodes() -> Episodes:
    """Random numbers."""
    rng, steps = np.random.default_rng(0), EPISODES * LENGTH
    return Episodes(
        observations=rng.random((steps + EPISODES, 4), np.float32),
        actions=rng.integers(0, ACTIONS, steps),
        rewards=rng.random((steps, 2)) / LENGTH,
        lengths=np.full(EPISODES, LENGTH),
        terminated=np.zeros(EPISODES, bool),
        truncated=np.ones(EPISODES, bool),
        objectives=("one", "other"),
    )


def counted(program: str) -> Count:
    """Kernels of an optimised program and the bytes they move; loops as often as they go round."""
    bodies = {
        found[1]: part
        for part in re.split(r"\n(?=(?:ENTRY )?%?[\w.\-]+ \()", program)
        if (found := re.match(r"(?:ENTRY )?%?([\w.\-]+) \(", part))
    }

    def of(name: str) -> Count:
        total, shapes = Count(0, 0), {}
        for own, shape, kind, given, line in _instructions(bodies[name]):
            shapes[own] = shape
            called = re.search(r"(?:calls|to_apply|body)=%?([\w.\-]+)", line)
            if kind == "while":
                trips = re.search(r'"n":"(\d+)"', line)
                total = total.plus(of(called[1]), int(trips[1]) if trips else 1)
            elif kind == "call":
                total = total.plus(of(called[1]))
            elif kind not in FREE:
                taken = _taken(bodies[called[1]]) if kind == "fusion" else {}
                moved = sum(taken.get(i, _bytes(shapes.get(each, ""))) for i, each in enumerate(given))
                total = total.plus(Count(1, moved + _bytes(shape)))
        return total

    return of(re.search(r"\nENTRY %?([\w.\-]+) \(", program)[1])


def _instructions(body: str) -> Iterator[tuple[str, str, str, list[str], str]]:
    """Name, shape, kind, names of what it is given, and the whole line."""
    for line in body.splitlines():
        found = re.match(r"\s+(?:ROOT )?%?([\w.\-]+) = (\(.*?\)|\S+) ([\w\-]+)\((.*)", line)
        if found:
            own, shape, kind, rest = found.groups()
            yield own, shape, kind, re.findall(r"%([\w.\-]+)", rest.split("), ")[0]), line


def _taken(body: str) -> dict[int, int]:
    """Bytes that a kernel takes of those arguments of which it only takes slices or rows."""
    places: dict[str, int] = {}
    taken: dict[int, int] = {}
    whole = set()
    for own, shape, kind, given, line in _instructions(body):
        if kind == "parameter":
            places[own] = int(re.search(r"parameter\((\d+)\)", line)[1])
        elif kind == "bitcast" and given[0] in places:
            places[own] = places[given[0]]
        else:
            for each in given:
                if kind in PARTIAL and each == given[0] and each in places:
                    taken[places[each]] = taken.get(places[each], 0) + _bytes(shape)
                else:
                    whole.add(places.get(each))
    return {place: size for place, size in taken.items() if place not in whole}


def _bytes(shape: str) -> int:
    arrays = re.findall(r"(\w+)\[([\d,]*)\]", shape)
    return sum(
        BYTES.get(kind, 4) * math.prod(map(int, filter(None, axes.split(",")))) for kind, axes in arrays
    )


def compiled(function: Callable[..., Any], state: Any, *rest: Any, transitions: int) -> Any:
    """For an H200, in place, with so many transitions of data."""
    (device,) = topologies.get_topology_desc("", "cuda", target_config=H200, topology="1x1x1").devices
    there, steps = jax.sharding.SingleDeviceSharding(device), EPISODES * LENGTH
    longer = {
        steps: transitions,
        EPISODES: transitions // LENGTH,
        steps + EPISODES: transitions + transitions // LENGTH,
    }
    arrays, static = eqx.partition((state, *rest), eqx.is_array)

    def shape(leaf: jax.Array) -> jax.ShapeDtypeStruct:
        axes = tuple(longer.get(axis, axis) for axis in leaf.shape[:1]) + leaf.shape[1:]
        return jax.ShapeDtypeStruct(axes, leaf.dtype, sharding=there)

    def of_arrays(state: Any, rest: Any) -> Any:
        return eqx.filter(function(*eqx.combine((state, *rest), static)), eqx.is_array)

    first, *others = jax.tree.map(shape, arrays)
    return jax.jit(of_arrays, donate_argnums=0).lower(first, tuple(others)).compile()


def programs(found: Population, config: TrainingConfig, chunk: int, transitions: int) -> dict[str, Any]:
    """Both stages of a population."""
    steps, size = np.arange(chunk, dtype=np.int32), {"transitions": transitions}
    values, policies = train_values.__wrapped__, train_policies.__wrapped__
    learned = (found.learner, found.hypers, found.seeds, found.data, jax.device_put(steps))
    shown = (
        found.shown(chunk),
        found.rates,
        found.seeds,
        found.data,
        jax.device_put(steps),
        config.extraction,
    )
    with jax.default_matmul_precision(config.trainer.precision):
        return {
            "values": compiled(values, found.values(), *learned, **size),
            "policies": compiled(policies, found.policies(), *shown, **size),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--hidden", type=int, nargs="+", default=[256, 256])
    parser.add_argument("--members", type=int, default=45)
    parser.add_argument("--precision", default="bfloat16")
    parser.add_argument("--chunk", type=int, default=500, help="updates that are one program")
    parser.add_argument("--transitions", type=int, default=450_000)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    settings = {"network.hidden": tuple(given.hidden), "trainer.precision": given.precision}
    config = TrainingConfig().adapted({**settings, "dual.steps": 10**6, "extraction.steps": 10**6})
    found = population_of(episodes(), "aetdice", config, given.members)
    jax.default_backend = lambda: "gpu"  # what programs ask for to know what they are compiled for
    rows = {}
    for stage, program in programs(found, config, given.chunk, given.transitions).items():
        count, plan = counted(program.as_text()), program.memory_analysis()
        rows[stage] = {
            "kernels_per_update": round(count.kernels / given.chunk, 1),
            "megabytes_per_update": round(1e-6 * count.bytes / given.chunk, 2),
            "arguments_bytes": plan.argument_size_in_bytes,
            "temporary_bytes": plan.temp_size_in_bytes,
        }
        print(stage, rows[stage], flush=True)
    asked = {name: value for name, value in vars(given).items() if name != "out"}
    made = {"commit": code_commit(), "date": datetime.date.today().isoformat(), "versions": versions()}
    write_json(given.out, {**asked, "device": "NVIDIA H200, compiled for", "stages": rows, **made})


if __name__ == "__main__":
    main()
