"""Sessions over HTTP, in this process and another: bounded, apart from each other, refused in words."""

import asyncio

import httpx
import numpy as np
import pytest
from support.policies import HORIZON, POLICIES, WORDS, policy_of, some_states

from aetdice.serving import policy_model
from aetdice_runner import Runner
from aetdice_runner.server import create_app
from aetdice_runner.service import FullError, LostError, Service

SECONDS = 60
"""Longer than any wait here should be."""


@pytest.fixture
def runner():
    return Runner(policy_model(policy_of()))


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
        (b'{"observation": [[0], [0], [0]]}', 422, "a list of 3 numbers, not lists of lists"),
        (b'{"observation": [3e38, 3e38, 3e38]}', 422, "the policy has no finite answer"),
        (b'{"observation": [0, 0, 0], "observation": [1, 1, 1]}', 400, "an entry is given twice"),
        (b'{"observation": {"a": 1, "a": 2}}', 400, "an entry is given twice"),
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
        for wrong in ([seen, seen], [seen], seen[:2], [1e39, 0, 0]):
            told = {"reward": [1, 2], "next_observation": wrong}
            assert client.post(f"{there}/observe", json=told).status_code == 422
        both = {"reward": [1, 2], "next_observation": seen}
        assert client.post(f"{there}/observe", json=both).json() == {"time": 1, "over": False}
    assert client.get("/openapi.json").status_code == 200
