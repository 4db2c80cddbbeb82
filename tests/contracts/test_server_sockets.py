"""A real server at a real port: it answers, bounds what it waits for, and stops gracefully."""

import asyncio
import re
import signal
import socket
import subprocess
import sys
import time as clock

import httpx
import pytest
from support.policies import policy_of

from aetdice import export_policy
from aetdice.serving import policy_model
from aetdice_runner import Runner
from aetdice_runner.server import _listen, create_app, create_server
from aetdice_runner.service import Service

SECONDS = 60
"""Longer than any wait here should be."""


@pytest.fixture
def runner():
    return Runner(policy_model(policy_of()))


@pytest.mark.parametrize("module", ["aetdice_runner", pytest.param("aetdice", marks=pytest.mark.slow)])
def test_real_server_answers_a_real_client_and_stops_gracefully(module, tmp_path):
    export_policy(policy_of(), tmp_path / "p.onnx")
    command = [sys.executable, "-m", module, *(["serve"] if module == "aetdice" else [])]
    log = tmp_path / "log"
    with log.open("w") as file:
        server = subprocess.Popen([*command, str(tmp_path / "p.onnx"), "--port", "0"], stderr=file)
    try:
        address = wait_for(log, server)
        with httpx.Client(base_url=address, timeout=SECONDS) as client:
            there = f"/episodes/{client.post('/episodes').json()['id']}"
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


def with_server(runner, ask):
    """What a coroutine gets from a server in this process, by its port."""

    async def run():
        listening, server = _listen("127.0.0.1", 0), create_server(create_app(Service(runner)))
        port = listening.getsockname()[1]
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        while not server.started:
            await asyncio.sleep(0.01)
        try:
            return await asyncio.wait_for(ask(port), SECONDS)
        finally:
            server.should_exit = True
            await serving

    return asyncio.run(run())


async def talk(port, *pieces, pause=0.0):
    """What a server answers to bytes before it closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def test_connections_that_never_ask_are_closed(runner, monkeypatch):
    """Silent ones, and heads that come a byte at a time; those that ask stay open."""
    monkeypatch.setattr("aetdice_runner.protocol.HEAD_SECONDS", 0.2)

    async def ask(port):
        began = clock.monotonic()
        silent, slow = talk(port), talk(port, *[b"G"] * 40, pause=0.05)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=SECONDS) as client:
            for _ in range(8):
                assert (await client.get("/health")).status_code == 200
                await asyncio.sleep(0.05)
            return await asyncio.gather(silent, slow), clock.monotonic() - began

    answers, seconds = with_server(runner, ask)
    assert answers == [b"", b""]
    assert seconds < 10


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"no request at all\r\n\r\n", b"400"),
        (b"GET /health HTTP/1.1\r\n\r\n", b"400"),
        (
            b"POST /episodes HTTP/1.1\r\nhost: a\r\ncontent-length: 99999999999\r\n\r\n" + b"x" * 70_000,
            b"413",
        ),
        (
            b"GET /health HTTP/1.1\r\nhost: a\r\nconnection: upgrade, close\r\nupgrade: websocket\r\n"
            b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n",
            b"200",
        ),
    ],
    ids=["nonsense", "no host", "endless body", "web socket"],
)
def test_odd_requests_are_answered_and_the_connection_closed(runner, head, status):
    answer = with_server(runner, lambda port: talk(port, head))
    assert answer.split(b" ")[1] == status


def test_heads_are_bounded(runner):
    """The rest of it is not read: perhaps the client hears of the closed connection before the answer."""
    head = b"GET /health HTTP/1.1\r\nhost: a\r\nx: " + b"y" * (1 << 17)
    assert with_server(runner, lambda port: talk(port, head))[9:12] in (b"", b"400")


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
