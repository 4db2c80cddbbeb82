"""A population over eight devices learns what it learns on one, and so does one member on large batches."""

import os
import subprocess
import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.training import TINY, tiny_run

from aetdice.files import read_arrays, write_arrays
from aetdice.learning.devices import SPLIT_ROWS, over_devices, split_rows

DEVICES = 8


CASES = {
    "members": {"beta": (0.1, 0.03, 0.01), "seed": [0, 1]},
    "rows": {
        "config": TINY.adapted(
            {
                "dual.batch": SPLIT_ROWS,
                "dual.steps": 20,
                "extraction.batch": SPLIT_ROWS,
                "extraction.steps": 20,
            }
        )
    },
}
"""What is spread: six members, or the batches of one and of its twin."""


def weights(case: str) -> dict[str, np.ndarray]:
    """Every number of the policies and their twins."""
    run = tiny_run(**CASES[case])
    leaves = [jax.tree.leaves(policy.network) for member in run.members for policy in member.acting]
    return {f"{i}-{j}": np.asarray(leaf) for i, each in enumerate(leaves) for j, leaf in enumerate(each)}


def on_eight_devices(call: str) -> str:
    """What a function of this file prints where there are so many."""
    environment = {
        **os.environ,
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={DEVICES}",
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
    }
    script = f"import test_devices; test_devices.{call}"
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def spread_and_alone() -> None:
    """Any number of members, more or fewer than devices, are updated as by themselves."""

    def update(state, rate, data, name):
        assert name == "kept"
        return {"state": state["state"] - rate[:, None] * data[None], "name": state["name"]}

    for count in (1, 3, 8, 11):
        members = ({"state": jnp.ones((count, 4)), "name": "a"}, jnp.arange(float(count)))
        shared = (jnp.arange(4.0), "kept")
        found = eqx.filter_jit(over_devices)(update, members, shared)
        assert found["name"] == "a"
        np.testing.assert_array_equal(found["state"], update(*members, *shared)["state"])
        sums = eqx.filter_jit(over_devices)(
            lambda state, rate: jnp.sum(state["state"], 1) * rate, members, ()
        )
        np.testing.assert_array_equal(sums, 4 * np.arange(count))
        assert len(sums.devices()) == len(found["state"].devices())
        print(len(found["state"].devices()), end=" ")


def split_batches() -> None:
    """How many rows of every batch, by update, member and row, one device has."""
    for members, rows in ((1, SPLIT_ROWS), (2, SPLIT_ROWS + 3), (1, SPLIT_ROWS - 1), (DEVICES, SPLIT_ROWS)):
        batches = {"seen": jnp.ones((3, members, rows, 2)), "weights": jnp.ones((3, members, rows))}
        both = {**batches, "beta": jnp.ones((3, members)), "zero": jnp.ones((3, members, 8))}
        found = jax.jit(split_rows, static_argnums=(1, 2))(both, members, rows)
        of_one = {name: found[name].addressable_shards[0].data.shape[2] for name in batches}
        assert of_one["seen"] == of_one["weights"]
        np.testing.assert_array_equal(found["seen"], batches["seen"])
        print(of_one["seen"], end=" ")


def test_members_are_spread_over_the_devices_whatever_their_number():
    assert on_eight_devices("spread_and_alone()").split() == ["1", "8", "8", "8"]


def test_rows_of_large_batches_are_split_where_members_leave_devices_idle():
    share = SPLIT_ROWS // DEVICES
    assert on_eight_devices("split_batches()").split() == [
        str(rows) for rows in (share, SPLIT_ROWS + 3, SPLIT_ROWS - 1, SPLIT_ROWS)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_eight_devices_learn_what_one_learns(tmp_path, case: str):
    on_eight_devices(f"keep_weights({str(tmp_path / 'eight.npz')!r}, {case!r})")
    eight, one = read_arrays(tmp_path / "eight.npz"), weights(case)
    assert eight.keys() == one.keys()
    for name, leaf in one.items():
        np.testing.assert_allclose(eight[name], leaf, rtol=1e-6, atol=1e-6)


def keep_weights(out: str, case: str) -> None:
    assert jax.device_count() == DEVICES
    write_arrays(Path(out), weights(case))
