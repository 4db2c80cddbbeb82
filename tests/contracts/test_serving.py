"""A shipped policy: one file, the same probabilities without JAX, sessions over HTTP that refuse in words."""

import asyncio
import json
import re
import signal
import socket
import subprocess
import sys
import time as clock
from pathlib import Path

import equinox as eqx
import httpx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import aetdice_runner
from aetdice import InputError, Policy, bsr, export_policy, load_policy
from aetdice.cli import main
from aetdice.data.coding import Coding, ObservationColumn
from aetdice.data.transforms import Chain, Safety, Scaling
from aetdice.networks import Categorical, Encoder, GaussianMixture, PolicyNetwork
from aetdice.objectives import objective_record
from aetdice.serving import policy_model
from aetdice_runner import Runner
from aetdice_runner.server import _listen, create_app
from aetdice_runner.service import FullError, LostError, Service

HORIZON, OBJECTIVES = 20, 2
RUN = Path(__file__).parents[1] / "support" / "version_0_1_run"
SECONDS = 60
"""Longer than any wait here should be."""
WORDS = Coding(
    (ObservationColumn("queue"), ObservationColumn("weather", ("dry", "rain"))),
    True,
    ("send", "how"),
    (("centre", 1), ("north", 1), ("north", 2)),
)


def policy_of(sizes=None, size=3, head=None, objectives=OBJECTIVES, scale=0.5, **given):
    """Some policy with opinions, and the frequencies that trained ones have; a large `scale` decides."""
    rng = np.random.default_rng(0)
    encoder = Encoder(
        sizes, HORIZON, True, True, rng.normal(size=size), 0.5 + rng.random(size),
        np.full(objectives, 2.7), 0 if sizes else 3, 8,
    )  # fmt: skip
    network = PolicyNetwork(encoder, head or Categorical(3), (32, 32), jax.random.key(0))
    last = scale * jax.random.normal(jax.random.key(1), network.net.weights[-1].shape)
    details = {"objective": "BSR", "objective_record": objective_record(bsr(0.25)), "objectives": ["a", "b"]}
    return Policy(eqx.tree_at(lambda p: p.net.weights[-1], network, last), details, **given)


POLICIES = {
    "one discrete entry": lambda: policy_of((5,), 1),
    "joint indicators": lambda: policy_of((5, 4, 3)),
    "too many for joint indicators": lambda: policy_of((50, 40, 3)),
    "continuous observations": policy_of,
    "one component": lambda: policy_of(head=GaussianMixture(np.array([-1.0]), np.array([3.0]), 1)),
    "a mixture": lambda: policy_of(head=GaussianMixture(np.array([-1.0, 5.0]), np.array([3.0, 6.0]), 3)),
    "words": lambda: policy_of(coding=WORDS),
    "transformed rewards": lambda: policy_of(
        objectives=3, transform=Chain((Scaling((0.5, 2.0)), Safety(height_entry=1, angle_entry=2)))
    ),
}


@pytest.fixture(params=POLICIES)
def policy(request):
    return POLICIES[request.param]()


@pytest.fixture
def runner():
    return Runner(policy_model(policy_of()))


def complaint(call):
    """What is said instead of an answer: one sentence."""
    with pytest.raises(InputError) as refused:
        call()
    assert "\n" not in str(refused.value)
    return str(refused.value)


class Client:
    """Requests to an application in this process."""

    def __init__(self, app):
        self.app = app

    def request(self, method, path, **given):
        return asyncio.run(self._request(method, path, given))

    async def _request(self, method, path, given):
        there = httpx.ASGITransport(self.app)
        async with httpx.AsyncClient(transport=there, base_url="http://here", timeout=SECONDS) as client:
            return await client.request(method, path, **given)

    def get(self, path):
        return self.request("GET", path)

    def post(self, path, **given):
        return self.request("POST", path, **given)

    def delete(self, path):
        return self.request("DELETE", path)


def some_states(policy, count=200):
    rng, encoder = np.random.default_rng(1), policy.network.encoder
    observations = (
        rng.normal(size=(count, len(encoder.centre))).astype(np.float32)
        if encoder.sizes is None
        else rng.integers(0, encoder.sizes, (count, len(encoder.sizes)))
    )
    accrued = rng.normal(size=(count, len(encoder.accrued_range))).astype(np.float32) * 5
    return observations, accrued, rng.integers(0, HORIZON, count)


@eqx.filter_jit
def outputs_of(network, observations, accrued, time):
    return jax.vmap(network.outputs)(observations, accrued, time)


# The artefact.


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


def test_decisive_policies_agree_as_far_as_float32_does():
    """JAX's log1p is wrong by two units in the last place, and the highest frequency shows it 200-fold.

    JAX is then as far from exact arithmetic as from the runner; without accrued reward they agree.
    """
    policy = policy_of(scale=2.0)
    runner, (seen, accrued, time) = Runner(policy_model(policy)), some_states(policy, 2000)
    for earned, tolerance in ((accrued, 3e-5), (0 * accrued, 5e-6)):
        expected = jax.nn.softmax(outputs_of(policy.network, *map(jnp.asarray, (seen, earned, time))))
        assert np.median(expected.max(axis=1)) > 0.95
        np.testing.assert_allclose(runner.probabilities(seen, earned, time), expected, atol=tolerance)


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
        (["export", str(RUN), "p.npz"], "call it p.onnx"),
        (["export", str(RUN), "there.onnx"], "there.onnx exists"),
        (["export", str(RUN), "p.onnx", "--member", "2"], "members 0 to 1, not 2"),
        (["export", str(RUN), "p.onnx", "--member", "-1"], "members 0 to 1, not -1"),
        (["export", str(RUN / "policy-0.npz"), "p.onnx", "--member", "0"], "only a run folder has members"),
        (["export", "nowhere", "p.onnx"], "no such policy file: nowhere"),
        (["export", ".", "p.onnx"], "has no result.json"),
        (["serve", "nowhere.onnx"], "no such policy file: nowhere.onnx"),
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


# The runner.


def test_runner_imports_no_jax(tmp_path):
    export_policy(policy_of(coding=WORDS), tmp_path / "p.onnx")
    code = (
        "import sys, aetdice_runner, aetdice_runner.server\n"
        f"sessions = aetdice_runner.Runner.load({str(tmp_path / 'p.onnx')!r}).start(2)\n"
        "sessions.act([[1.0, 'dry'], {'queue': 2.0, 'weather': 'rain'}])\n"
        "sessions.observe([[1, 2], [3, 4]])\n"
        "found = {'jax', 'jaxlib', 'jaxtyping', 'equinox', 'aetdice', 'onnx'} & set(sys.modules)\n"
        "assert not found, found\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kind", ["words", "a mixture"])
def test_randomness_is_fresh_unless_a_seed_is_given(kind):
    policy = POLICIES[kind]()
    runner = Runner(policy_model(policy))
    seen = [[0.1, "dry"]] * 200 if kind == "words" else np.zeros((200, 3))

    def actions(**given):
        return runner.start(200, **given).act(seen).tolist()

    assert actions(seed=3) == actions(seed=3)
    assert actions(seed=3) != actions(seed=4)
    assert actions() != actions()
    assert actions(greedy=True) == actions(greedy=True)


def test_episodes_that_ended_begin_anew(runner):
    sessions = runner.start(3)
    sessions.act(np.zeros((3, 3)))
    sessions.observe(np.ones((3, 2)), ended=np.array([True, False, False]))
    assert sessions.time.tolist() == [0, 1, 1]
    assert sessions.accrued.tolist() == [[0, 0], [1, 1], [1, 1]]


@pytest.mark.parametrize(
    ("observations", "words"),
    [
        ([[0.0, np.nan, 0.0]], "must be finite, but entry 1 is nan"),
        ([[0.0, 1e39, 0.0]], "must be finite, but entry 1 is 1e+39"),
        ([[0.0, 10**400, 0.0]], "must be numbers"),
        ([[0.0, 1.0]], "has 3 entries, not 2"),
        ([[0.0] * 3] * 2, "1 episodes need 1 observations"),
        ([[0.0, [1.0], 2.0]], "must be numbers"),
        ([["a", "b", "c"]], "must be numbers"),
        (None, "must be numbers"),
    ],
)
def test_runner_refuses_observations(runner, observations, words):
    assert words in complaint(lambda: runner.start().act(observations))


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ([0.1, "snow"], "'weather' is 'snow', which the data never had; known: dry, rain"),
        ({"queue": 0.1}, "has no 'weather'"),
        (["much", "dry"], "'queue' is a number, not 'much'"),
        ([10**400, "dry"], "'queue' is too large"),
        ([np.nan, "dry"], "must be finite"),
        ([0.1], "has 2 entries (queue, weather), not 1"),
    ],
)
def test_runner_refuses_words_it_does_not_know(row, words):
    sessions = Runner(policy_model(policy_of(coding=WORDS))).start()
    assert words in complaint(lambda: sessions.act([row]))


def test_runner_refuses_rewards_and_turns(runner):
    sessions = runner.start()
    assert "before act" in complaint(lambda: sessions.observe([[1, 2]]))
    sessions.act(np.zeros((1, 3)))
    assert "called twice" in complaint(lambda: sessions.act(np.zeros((1, 3))))
    for wrong in ([[1, np.nan]], [[1, 2, 3]], [1, 2], [["a", "b"]], [[1e39, 0]], "ab"):
        assert complaint(lambda wrong=wrong: sessions.observe(wrong))
    sessions.observe([[3e38, 1]])
    sessions.act(np.zeros((1, 3)))
    assert "finite" in complaint(lambda: sessions.observe([[3e38, 1]]))  # the sum is not
    for wrong in (-1, 2**64, True):
        assert "a seed is" in complaint(lambda wrong=wrong: runner.start(seed=wrong))
    assert "at least one episode" in complaint(lambda: runner.start(0))


# The service and its routes.


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_sessions_are_bounded_and_forgotten_when_idle(runner):
    ticking = Clock()
    service = Service(runner, sessions=2, idle=10, clock=ticking)
    first, second = service.start(), service.start()
    with pytest.raises(FullError, match="2 episodes are open"):
        service.start()
    ticking.now = 8
    service.act(second, [0, 0, 0])
    ticking.now = 12
    third = service.start()  # in the place of the first
    with pytest.raises(LostError):
        service.act(first, [0, 0, 0])
    service.observe(second, [1, 2])
    service.end(third)
    assert (len(service), service.started, service.evicted) == (1, 3, 1)
    ticking.now = 100
    assert service.evict() == 1
    assert len({first, second, third}) == 3


@pytest.fixture
def client(runner):
    return Client(create_app(Service(runner, sessions=3), largest_body=1000))


def begin(client, **told):
    answer = client.post("/episodes", json=told)
    assert answer.status_code == 201
    return f"/episodes/{answer.json()['id']}"


def test_episode_goes_over_http_as_in_the_runner(client, runner):
    there, here = begin(client, seed=5), runner.start(seed=5)
    rng = np.random.default_rng(0)
    for step in range(HORIZON):
        seen, reward = rng.normal(size=3).tolist(), rng.normal(size=2).tolist()
        answer = client.post(f"{there}/act", json={"observation": seen})
        assert answer.json() == {"action": int(here.act([seen])[0]), "time": step}
        told = client.post(f"{there}/observe", json={"reward": reward}).json()
        here.observe([reward])
        assert told == {"time": step + 1, "over": step == HORIZON - 1}
    answer = client.post(f"{there}/act", json={"observation": seen})
    assert answer.status_code == 409
    assert answer.json()["error"].startswith("the episode is over")
    assert client.delete(there).status_code == 204
    assert client.delete(there).status_code == 404


def test_no_session_sees_another(client, runner):
    """Two episodes in turns are two episodes alone."""
    names = [begin(client, seed=seed) for seed in (1, 2)]
    alone = [runner.start(seed=seed) for seed in (1, 2)]
    for step in range(6):
        for i, (there, here) in enumerate(zip(names, alone, strict=True)):
            seen, reward = [float(i), step / 5, 0.0], [10.0 * i, -step]
            answer = client.post(f"{there}/act", json={"observation": seen}).json()
            assert answer == {"action": int(here.act([seen])[0]), "time": step}
            client.post(f"{there}/observe", json={"reward": reward})
            here.observe([reward])
    assert len(names[0].split("/")[-1]) == 32


@pytest.mark.parametrize(
    ("content", "status", "words"),
    [
        (b"", 422, "the body needs 'observation'"),
        (b"{", 400, "not JSON"),
        (b"[1]", 400, "a JSON object"),
        (b"\xff\xfe{", 400, "not JSON"),
        (b'{"observation": [NaN, 0, 0]}', 400, "NaN is no number in JSON"),
        (b"[" * 900, 400, "JSON"),
        (b'{"observation": [1e999, 0, 0]}', 422, "must be finite"),
        (b'{"observation": [1' + b"0" * 400 + b", 0, 0]}", 422, "must be numbers"),
        (b'{"observation": [1, 2]}', 422, "has 3 entries, not 2"),
        (b'{"observation": null}', 422, "must be numbers"),
        (b'{"observation": {"a": 1}}', 422, "must be numbers"),
        (b'{"observation": "abc"}', 422, "must be numbers"),
        (b'{"observation": [0, 0, 0], "id": 3}', 422, "there is no 'id' here"),
        (b'{"observation": [' + b"0, " * 1000 + b"0]}", 413, "larger than 1000 bytes"),
    ],
)
def test_malformed_requests_are_refused_in_words(client, content, status, words):
    there, kind = begin(client), {"content-type": "application/json"}
    answer = client.post(f"{there}/act", content=content, headers=kind)
    assert answer.status_code == status
    assert words in answer.json()["error"]
    fine = client.post(f"{there}/act", json={"observation": [0, 0, 0]})
    assert fine.status_code == 200  # and nothing has happened to the episode


def test_other_mistakes_are_refused_in_words(client):
    there = begin(client)

    def refusal(method, path, **given):
        answer = client.request(method, path, **given)
        return answer.status_code, answer.json()["error"]

    assert refusal("POST", f"{there}/observe", json={"reward": [1, 2]})[0] == 409
    client.post(f"{there}/act", json={"observation": [0, 0, 0]})
    for reward in ([1], [1, None], 3, "ab", None, [[1, 2]], {"a": 1}):
        assert refusal("POST", f"{there}/observe", json={"reward": reward})[0] == 422
    assert refusal("POST", f"{there}/act", json={"observation": [0, 0, 0]})[0] == 409
    assert refusal("POST", "/episodes/0/act", json={"observation": [0, 0, 0]})[0] == 404
    assert refusal("POST", "/episodes", json={"seed": 1.5}) == (422, "seed is of type int, not float")
    assert refusal("POST", "/episodes", json={"seed": -1})[0] == 422
    assert refusal("POST", "/episodes", json={"greedy": 1})[0] == 422
    assert refusal("POST", "/episodes", content=b"{}", headers={"content-type": "text/plain"})[0] == 415
    assert refusal("GET", "/episodes")[0] == 405
    assert refusal("GET", "/nowhere")[0] == 404
    begin(client), begin(client)
    assert refusal("POST", "/episodes", json={})[0] == 429


def test_body_that_never_ends_is_given_up(runner, monkeypatch):
    monkeypatch.setattr("aetdice_runner.server.BODY_SECONDS", 0.05)

    async def endless():
        yield b"{"
        await asyncio.sleep(SECONDS)

    kind = {"content-type": "application/json"}
    answer = Client(create_app(Service(runner))).post("/episodes", content=endless(), headers=kind)
    assert (answer.status_code, answer.json()["error"]) == (408, "the body took longer than 0.05 s")


def test_idle_episodes_are_forgotten_while_nobody_asks(runner):
    ticking = Clock()
    service = Service(runner, idle=10, clock=ticking)
    app = create_app(service, sweep=0.01)
    service.start()
    ticking.now = 11

    async def wait():
        async with app.router.lifespan_context(app):
            for _ in range(1000):
                await asyncio.sleep(0.01)
                if len(service) == 0:
                    return

    asyncio.run(wait())
    assert len(service) == 0


def test_metrics_health_and_openapi(client):
    there = begin(client)
    client.post(f"{there}/act", json={"observation": [0, 0, 0]})
    client.post(f"{there}/act", json={"observation": [0, 0]})
    text = client.get("/metrics").text
    for line in (
        "aetdice_sessions 1",
        "aetdice_decisions_total 1",
        'aetdice_requests_total{route="/episodes/{id}/act",status="409"} 1',
        "aetdice_request_seconds_count 3",
    ):
        assert line in text.splitlines()
    assert there.split("/")[-1] not in text
    health = client.get("/health").json()
    assert (health["status"], health["horizon"], health["sessions"]) == ("ok", HORIZON, 1)
    paths = client.get("/openapi.json").json()["paths"]
    assert set(paths) == {
        "/episodes", "/episodes/{id}", "/episodes/{id}/act", "/episodes/{id}/observe", "/health", "/metrics",
    }  # fmt: skip


@pytest.mark.parametrize("kind", POLICIES)
def test_every_kind_of_policy_is_served(kind):
    policy = POLICIES[kind]()
    client = Client(create_app(Service(Runner(policy_model(policy)))))
    there = begin(client, greedy=True)
    seen = [1.5, "dry"] if policy.coding else some_states(policy, 1)[0][0].tolist()
    action = client.post(f"{there}/act", json={"observation": seen}).json()["action"]
    if policy.coding:
        assert action in [list(entry) for entry in WORDS.actions]
    else:
        policy.reset(greedy=True)
        np.testing.assert_allclose(action, policy.act(seen), atol=1e-4)
    alone = client.post(f"{there}/observe", json={"reward": [1, 2]})
    assert alone.status_code == (200 if policy.transform is None else 422)
    if policy.transform is not None:
        both = {"reward": [1, 2], "next_observation": seen}
        assert client.post(f"{there}/observe", json=both).json() == {"time": 1, "over": False}
    assert client.get("/openapi.json").status_code == 200


# A real server.


@pytest.mark.parametrize("module", ["aetdice_runner", "aetdice"])
def test_real_server_answers_a_real_client_and_stops_gracefully(module, tmp_path):
    export_policy(policy_of(), tmp_path / "p.onnx")
    command = [sys.executable, "-m", module, *(["serve"] if module == "aetdice" else [])]
    log = tmp_path / "log"
    with log.open("w") as file:
        server = subprocess.Popen([*command, str(tmp_path / "p.onnx"), "--port", "0"], stderr=file)
    try:
        address = wait_for(log, server)
        with httpx.Client(base_url=address, timeout=SECONDS) as client:
            there = begin(client)
            for step in range(3):
                answer = client.post(f"{there}/act", json={"observation": [0.5, 0, step]})
                assert answer.json()["action"] in (0, 1, 2)
                client.post(f"{there}/observe", json={"reward": [1, 0.5]})
            assert client.get("/health").json()["sessions"] == 1
            assert client.post(f"{there}/act", content=b"{", headers={"content-type": "application/json"})
            used = subprocess.run(
                [*command, str(tmp_path / "p.onnx"), "--port", address.rsplit(":", 1)[1]],
                capture_output=True, text=True, timeout=SECONDS, check=False,
            )  # fmt: skip
            assert used.returncode == 2
            assert "cannot be listened on" in used.stderr
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=SECONDS) == 0
        assert log.read_text().splitlines()[-1] == "stopped"
    finally:
        server.kill()
        server.wait(timeout=SECONDS)


def test_answers_do_not_wait_for_acknowledgements():
    """asyncio turns Nagle's algorithm off only if the socket names its protocol."""
    with _listen("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP


def wait_for(log, server):
    """The address that a server prints."""
    until = clock.monotonic() + SECONDS
    while clock.monotonic() < until and server.poll() is None:
        if found := re.search(r"serving on (http://\S+)\n", log.read_text()):
            return found.group(1)
        clock.sleep(0.05)
    raise AssertionError(f"no server: {log.read_text()}")


def test_errors_are_one_kind():
    assert aetdice_runner.InputError is InputError
