"""A policy as programs of `jax.export`: JAX alone loads them and says what the policy says."""

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from support.policies import POLICIES, WORDS, complaint, policy_of, some_states

from aetdice import export_policy
from aetdice.cli import main
from aetdice.serving import policy_model
from aetdice.serving.programs import policy_programs
from aetdice_runner import Runner
from aetdice_runner.artefact import facts_checksum

RUN = Path(__file__).parents[1] / "support" / "version_0_1_run"
COUNT, KINDS = 7, ("joint indicators", "a mixture")


def load(content):
    """The programs and the facts of a file."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        facts = json.loads(archive.read("facts.json"))
        names = [name for name in archive.namelist() if name != "facts.json"]
        return {name: export.deserialize(archive.read(name)).call for name in names}, facts


@pytest.fixture(scope="module", params=KINDS)
def exported(request):
    policy = POLICIES[request.param]()
    return policy, *load(policy_programs(policy, {"verdict": "fine"}))


def told(policy, count):
    seen, accrued, time = some_states(policy, count)
    kind = jnp.float32 if policy.network.encoder.sizes is None else jnp.int32
    return jnp.asarray(seen, kind), jnp.asarray(accrued), jnp.asarray(time, jnp.int32)


def test_equal_keys_sample_equal_actions(exported):
    """The very actions of `Policy.sample`."""
    policy, programs, _ = exported
    state, key = told(policy, COUNT), jax.random.key(5)
    outputs = programs["outputs"](*state)
    drawn = programs["sample"](outputs, jax.random.key_data(key))
    np.testing.assert_allclose(drawn, policy.sample(*state, key), rtol=1e-5, atol=1e-5)
    greedy = programs["greedy"](outputs)
    np.testing.assert_allclose(greedy, policy.sample(*state, key, greedy=True), rtol=1e-5, atol=1e-5)


def test_log_probabilities_are_the_policy_s(exported):
    policy, programs, _ = exported
    state = told(policy, COUNT)
    actions = policy.sample(*state, jax.random.key(0))
    found = programs["log_probability"](programs["outputs"](*state), actions)
    expected = jax.jit(jax.vmap(policy.network.log_probability))(*state, actions)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    if policy.discrete:  # and those of the other file
        runner = Runner(policy_model(policy)).probabilities(*map(np.asarray, state))
        np.testing.assert_allclose(np.exp(found), runner[np.arange(COUNT), np.asarray(actions)], atol=1e-5)


def test_facts_are_those_of_the_other_file(exported):
    policy, programs, facts = exported
    other = Runner(policy_model(policy, {"verdict": "fine"})).facts
    same = set(facts) - {"sha256", "facts_sha256", "jax"}
    assert {name: facts[name] for name in same} == {name: other[name] for name in same}
    assert set(facts["sha256"]) == set(programs) == {"outputs", "log_probability", "sample", "greedy"}
    assert facts["facts_sha256"] == facts_checksum(facts)


def test_jax_alone_loads_the_file(tmp_path):
    export_policy(policy_of(coding=WORDS), tmp_path / "p.jax")
    code = (
        "import json, sys, zipfile, jax\n"
        "from jax import export\n"
        f"with zipfile.ZipFile({str(tmp_path / 'p.jax')!r}) as file:\n"
        "    network = export.deserialize(file.read('outputs'))\n"
        "    coding = json.loads(file.read('facts.json'))['coding']\n"
        "zeros = jax.numpy.zeros\n"
        "print(network.call(zeros((4, 3)), zeros((4, 2)), zeros(4, int)).shape, coding['action_names'])\n"
        "assert not {'aetdice', 'aetdice_runner', 'equinox', 'onnx'} & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == "(4, 3) ['send', 'how']", done.stderr


def test_equal_policies_are_equal_files_and_commands_write_them(tmp_path, capsys):
    main(["export", str(RUN), str(tmp_path / "one.jax")])
    main(["export", str(RUN), str(tmp_path / "two.jax")])
    written = (tmp_path / "one.jax").read_bytes()
    assert written == (tmp_path / "two.jax").read_bytes()
    assert b".py" not in written  # JAX would keep the folders of this machine
    assert "member 0" in capsys.readouterr().out
    assert "neither suffix" in complaint(lambda: export_policy(policy_of(), tmp_path / "three.npz"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.jax", "two.jax"]
