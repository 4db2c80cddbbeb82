"""A population over eight devices learns what it learns on one."""

import os
import subprocess
import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.training import tiny_run

from aetdice.files import read_arrays, write_arrays
from aetdice.learning.devices import over_devices

DEVICES = 8


def weights() -> dict[str, np.ndarray]:
    """Every number of the policies of six members and their twins."""
    run = tiny_run(beta=(0.1, 0.03, 0.01), seed=[0, 1])
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


def test_members_are_spread_over_the_devices_whatever_their_number():
    assert on_eight_devices("spread_and_alone()").split() == ["1", "3", "8", "8"]


@pytest.mark.slow
def test_members_learn_the_same_on_eight_devices_as_on_one(tmp_path):
    on_eight_devices(f"keep_weights({str(tmp_path / 'eight.npz')!r})")
    eight, one = read_arrays(tmp_path / "eight.npz"), weights()
    assert eight.keys() == one.keys()
    for name, leaf in one.items():
        np.testing.assert_allclose(eight[name], leaf, rtol=1e-6, atol=1e-6)


def keep_weights(out: str) -> None:
    assert jax.device_count() == DEVICES
    write_arrays(Path(out), weights())
