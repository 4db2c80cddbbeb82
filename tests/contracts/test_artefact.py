"""A shipped policy is one file with the same probabilities, and damage to it is seen."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.policies import (
    HORIZON,
    OBJECTIVES,
    POLICIES,
    WORDS,
    complaint,
    outputs_of,
    policy_of,
    some_states,
)

from aetdice import bsr, export_policy, load_policy
from aetdice.cli import main
from aetdice.data.transforms import Scaling
from aetdice.networks import Categorical
from aetdice.objectives import objective_record
from aetdice.serving import policy_model
from aetdice.serving.graph import load_onnx
from aetdice_runner import Runner
from aetdice_runner.artefact import facts_checksum

RUN = Path(__file__).parents[1] / "support" / "version_0_1_run"


@pytest.fixture(params=POLICIES)
def policy(request):
    return POLICIES[request.param]()


def test_probabilities_are_those_of_the_jax_policy(policy):
    states, head = some_states(policy), policy.network.head
    expected = outputs_of(policy.network, *(jnp.asarray(each) for each in states))
    runner = Runner(policy_model(policy))
    found = runner.outputs(*states)
    if isinstance(head, Categorical):
        probabilities = jax.nn.softmax(expected)
        np.testing.assert_allclose(runner.probabilities(*states), probabilities, atol=1e-5)
        assert probabilities.max() > 0.9  # of a uniform policy, everything agrees
    else:
        weights, mean, log_std = jax.vmap(head._parameters)(expected)
        np.testing.assert_allclose(np.exp(found["log_weights"]), np.exp(weights), atol=1e-5)
        np.testing.assert_allclose(found["mean"], mean, atol=5e-5)
        np.testing.assert_allclose(found["log_std"], log_std, atol=5e-5)


@pytest.mark.parametrize("scale", [0.5, 2.0, 30.0])
def test_log_probabilities_agree_relative_to_the_logits(scale):
    """Within 1e-5 of the largest logit, however decisive a policy is; the runner is no further off than JAX.

    The highest frequency of the accrued reward shows the last bit of a float32 two hundred-fold, so JAX's
    own logits are as far from exact arithmetic.
    """
    policy = policy_of(scale=scale)
    states = some_states(policy, 2000)
    theirs = np.asarray(outputs_of(policy.network, *map(jnp.asarray, states)), np.float64)
    ours = Runner(policy_model(policy)).outputs(*states)["logits"].astype(np.float64)
    exact = exact_outputs(policy.network, *states)
    largest = np.abs(exact).max()
    assert largest > 10 * scale
    np.testing.assert_allclose(log_softmax(ours), log_softmax(theirs), atol=1e-5 * largest, rtol=0)
    assert np.abs(ours - exact).max() < min(5e-6 * largest, 1.5 * np.abs(theirs - exact).max())


def exact_outputs(network, observations, accrued, time):
    """A policy network in double precision, written once more."""
    encoder, net = network.encoder, network.net

    def fourier(x, frequencies):
        angles = np.pi * 2.0 ** np.arange(-1, frequencies - 1) * x[:, None]
        return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)

    constants = (encoder.centre, encoder.spread, encoder.accrued_range)
    centre, spread, reach = (np.asarray(each, np.float32).astype(np.float64) for each in constants)
    seen, earned = (
        (observations - centre) / spread,
        np.sign(accrued) * np.log1p(np.abs(accrued.astype(float))),
    )
    parts = [seen, *(fourier(x / 2, encoder.observation_fourier) for x in seen.T), earned / reach]
    parts += [fourier(x, encoder.fourier) for x in (earned / reach).T]
    x = np.concatenate([*parts, fourier(time / encoder.horizon, encoder.fourier)], axis=1)
    for weight, bias in zip(net.weights[:-1], net.biases[:-1], strict=True):
        x = x @ np.asarray(weight, float) + np.asarray(bias, float)
        x = x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return x @ np.asarray(net.weights[-1], float) + np.asarray(net.biases[-1], float)


def log_softmax(logits):
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def test_episodes_go_as_with_the_jax_policy(policy):
    """Greedily, with everything that is remembered; words in and words out."""
    many, sessions = policy.vectorised(50, greedy=True), Runner(policy_model(policy)).start(50, greedy=True)
    rng = np.random.default_rng(2)
    for _ in range(HORIZON):
        seen, rewards = some_states(policy, 50)[0], rng.normal(size=(50, 2))
        if policy.coding is not None:
            seen = [[row[0], ("dry", "rain")[i % 2]] for i, row in enumerate(seen)]
        ours, theirs = sessions.act(seen), many.act(seen)
        if policy.coding is None and not policy.discrete:
            np.testing.assert_allclose(ours, theirs, atol=1e-4)
        else:
            assert ours.tolist() == theirs.tolist()
        sessions.observe(rewards, seen)
        many.observe(rewards, seen)
        np.testing.assert_array_equal(sessions.accrued, many.accrued)
    assert complaint(lambda: sessions.act(seen)) == complaint(lambda: many.act(seen))


def test_samples_have_the_probabilities():
    """A hundred thousand draws in one batch, against what the graph says."""
    for policy in (policy_of(), POLICIES["a mixture"]()):
        runner, count = Runner(policy_model(policy)), 100_000
        state = [each[:1] for each in some_states(policy)]
        state[1], state[2] = np.zeros((1, OBJECTIVES), np.float32), np.zeros(1, int)
        actions = runner.start(count, seed=0).act(np.repeat(state[0], count, 0))
        if policy.discrete:
            shares = np.bincount(actions, minlength=3) / count
            np.testing.assert_allclose(shares, runner.probabilities(*state)[0], atol=0.01)
        else:
            key = jax.random.key(0)
            told = (np.repeat(each, count, 0) for each in state)
            expected = np.asarray(policy.sample(*told, key))
            grid = np.linspace(0, 1, 21)
            np.testing.assert_allclose(
                np.quantile(actions, grid, axis=0).mean(axis=1),
                np.quantile(expected, grid, axis=0).mean(axis=1),
                atol=0.05,
            )


def test_metadata_says_everything_else(tmp_path):
    policy = policy_of(coding=WORDS, transform=Scaling((0.5, 2.0)))
    export_policy(policy, tmp_path / "p.onnx", {"verdict": "fine"})
    assert [path.name for path in tmp_path.iterdir()] == ["p.onnx"]
    facts = Runner.load(tmp_path / "p.onnx").facts
    assert facts["horizon"] == HORIZON
    assert (facts["objective"], facts["objectives"]) == ("BSR", ["a", "b"])
    assert facts["coding"] == json.loads(json.dumps(WORDS.record()))
    assert facts["transform"] == {"kind": "scaling", "factors": [0.5, 2.0]}
    assert facts["action"] == {"kind": "discrete", "count": 3}
    assert facts["result"] == {"verdict": "fine"}
    assert facts["details"]["objective_record"] == objective_record(bsr(0.25))
    assert set(facts) >= {"format", "aetdice", "sha256", "observation"}


def test_file_is_valid_onnx_for_others(tmp_path):
    onnx = pytest.importorskip("onnx")
    for name, make in POLICIES.items():
        onnx.checker.check_model(onnx.load_from_string(policy_model(make())), full_check=True)
        assert name


@pytest.mark.parametrize("place", [0.05, 0.4, 0.6])
def test_damaged_file_is_refused(tmp_path, place):
    model = bytearray(policy_model(policy_of()))
    where = int(len(model) * place)
    model[where] ^= 0xFF
    (tmp_path / "p.onnx").write_bytes(bytes(model))
    assert complaint(lambda: Runner.load(tmp_path / "p.onnx")).startswith("p.onnx: ")


@pytest.mark.parametrize(
    ("old", "new"),
    [(b'"horizon": 20', b'"horizon": 29'), (b'"size": 3', b'"size": 4'), (b'"north"', b'"nerth"')],
)
def test_damaged_metadata_is_refused(old, new):
    model = policy_model(policy_of(coding=WORDS))
    assert model.count(old) >= 1
    assert "metadata does not fit its checksum" in complaint(lambda: Runner(model.replace(old, new)))


def test_metadata_of_another_graph_is_refused():
    """With checksums that fit: whoever wrote it did so by hand."""
    model = load_onnx().load_from_string(policy_model(policy_of()))
    (entry,) = model.metadata_props
    for change, words in (
        ({"accrued": 3}, "its graph has other inputs"),
        ({"observation": {"size": 3, "sizes": [2, 2, 2]}}, "its graph has other inputs"),
        ({"result": ...}, "not whole: KeyError('result')"),
    ):
        facts = {**json.loads(entry.value), **change}
        facts = {name: value for name, value in facts.items() if value is not ...}
        changed = type(model)()
        changed.CopyFrom(model)
        changed.metadata_props[0].value = json.dumps({**facts, "facts_sha256": facts_checksum(facts)})
        assert words in complaint(lambda changed=changed: Runner(changed.SerializeToString()))


@pytest.mark.parametrize("content", [b"", b"no", b"\x3a\xff\xff\xff\xff", b"\x08\x0a", bytes(range(256))])
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "p.onnx").write_bytes(content)
    assert "no policy that the runner can read" in complaint(lambda: Runner.load(tmp_path / "p.onnx"))
    assert "no such policy file" in complaint(lambda: Runner.load(tmp_path / "q.onnx"))


def test_runs_and_policy_files_are_exported_by_command(tmp_path, capsys):
    main(["export", str(RUN), str(tmp_path / "chosen.onnx")])
    main(["export", str(RUN), str(tmp_path / "other.onnx"), "--member", "1"])
    main(["export", str(RUN / "policy-1.npz"), str(tmp_path / "file.onnx")])
    chosen, other, file = (Runner.load(tmp_path / f"{name}.onnx") for name in ("chosen", "other", "file"))
    assert chosen.facts["result"]["member"] == 0
    assert chosen.facts["result"]["verdict"].startswith("The dual has NOT converged")
    assert isinstance(chosen.facts["result"]["score"], float)
    assert other.facts["result"]["member"] == 1
    assert file.facts["result"] is None
    assert other.facts["sha256"] == file.facts["sha256"] != chosen.facts["sha256"]
    states = some_states(load_policy(RUN / "policy-1.npz"), 5)
    np.testing.assert_array_equal(other.probabilities(*states), file.probabilities(*states))
    assert "member 0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["export", str(RUN), "p.npz"], "call it p.onnx or p.jax"),
        (["export", str(RUN), "there.onnx"], "there.onnx exists"),
        (["export", str(RUN), "p.onnx", "--member", "2"], "members 0 to 1, not 2"),
        (["export", str(RUN), "p.onnx", "--member", "-1"], "members 0 to 1, not -1"),
        (["export", str(RUN / "policy-0.npz"), "p.onnx", "--member", "0"], "only a run folder has members"),
        (["export", "nowhere", "p.onnx"], "no such policy file: nowhere"),
        (["export", ".", "p.onnx"], "has no result.json"),
        (["serve", "nowhere.onnx"], "no such policy file: nowhere.onnx"),
        (["serve", "there.jax"], "there.jax runs with JAX alone; export an .onnx file"),
        (["serve", "there.onnx"], "no policy that the runner can read"),
        (["serve", str(RUN), "--port", "70000"], "from 0 to 65535, not 70000"),
        (["serve", str(RUN), "--sessions", "0"], "at least one session"),
        (["serve", str(RUN), "--idle", "0"], "positive number of seconds"),
    ],
)
def test_commands_refuse_in_one_line(arguments, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("there.onnx").touch()
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    *_, line = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("error: ")
    assert words in line
    assert [path.name for path in tmp_path.iterdir()] == ["there.onnx"]
