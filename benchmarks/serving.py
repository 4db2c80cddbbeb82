"""A shipped policy: load time, time per decision, answers under many sessions, memory over many episodes.

python benchmarks/serving.py [--parts runner sessions memory service] [--sessions 1000] [--pace 4]
                             [--seconds 20] [--episodes 100000] [--limit 1200] [--note WORDS] [--out OUT.json]

runner: load time and time per decision in one process. sessions: each decides once per `pace` seconds, which
are two requests, over a connection of its own; the client runs on the same cores. memory: `episodes` whole
episodes of one step over HTTP, for at most `limit` seconds. service: as many that nobody ends, in one process
without HTTP. An OUT that exists keeps the parts that are not measured again.
"""

import argparse
import asyncio
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import equinox as eqx
import jax
import numpy as np

from aetdice import Policy, export_policy
from aetdice.files import package_version, versions, write_json
from aetdice.networks import Categorical, Encoder, PolicyNetwork
from aetdice.studies.parts import code_commit
from aetdice_runner import Runner
from aetdice_runner.service import Service

SIZE, OBJECTIVES, HORIZON, HIDDEN, ACTIONS = 17, 3, 1000, (256, 256), 6
SEEN, REWARD = [0.1] * SIZE, [0.5] * OBJECTIVES
WAIT = 60
PARTS = ("runner", "sessions", "memory", "service")


def write_policy(path: Path) -> None:
    """A policy of the default size, not trained."""
    encoder = Encoder(None, HORIZON, True, True, np.zeros(SIZE), np.ones(SIZE), np.ones(OBJECTIVES), 0, 8)
    network = PolicyNetwork(encoder, Categorical(ACTIONS), HIDDEN, jax.random.key(0))
    last = 0.1 * jax.random.normal(jax.random.key(1), network.net.weights[-1].shape)
    export_policy(Policy(eqx.tree_at(lambda p: p.net.weights[-1], network, last)), path)


def measure_runner(path: Path) -> dict[str, float]:
    """Load in a fresh process; decisions alone, and in batches of 5,000."""
    code = (
        "import time; begun = time.perf_counter(); from aetdice_runner import Runner;"
        f"Runner.load({str(path)!r}); print(time.perf_counter() - begun)"
    )
    loads = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=WAIT).stdout)
        for _ in range(5)
    ]
    runner = Runner.load(path)
    one, times = runner.start(), []
    for _ in range(HORIZON):
        begun = time.perf_counter()
        one.act([SEEN])
        one.observe([REWARD])
        times.append(time.perf_counter() - begun)
    many, seen = runner.start(5000), np.tile(SEEN, (5000, 1))
    begun = time.perf_counter()
    many.act(seen)
    batch = time.perf_counter() - begun
    return {
        "load_seconds_median_of_5": round(float(np.median(loads)), 3),
        "load_seconds_worst_of_5": round(max(loads), 3),
        "decision_ms_p50": round(1e3 * float(np.quantile(times, 0.5)), 4),
        "decision_ms_p99": round(1e3 * float(np.quantile(times, 0.99)), 4),
        "batch_of_5000_ms": round(1e3 * batch, 1),
    }


class Connection:
    """HTTP/1.1 as small as it can be: the client must not be what is measured."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port

    async def open(self) -> "Connection":
        self.reader, self.writer = await asyncio.open_connection(self.host, self.port)
        return self

    async def ask(self, method: str, path: str, told: object = None) -> bytes:
        body = b"" if told is None else json.dumps(told).encode()
        self.writer.write(
            f"{method} {path} HTTP/1.1\r\nhost: {self.host}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\n\r\n".encode()
            + body
        )
        head = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), WAIT)
        status = int(head[9:12])
        if status >= 300:
            raise RuntimeError(head.decode())
        length = re.search(rb"content-length: (\d+)", head)
        return await self.reader.readexactly(int(length[1])) if length and status != 204 else b""


async def keep_deciding(
    there: Connection, first: float, until: float, pace: float, times: list[float]
) -> None:
    """One session: it acts and observes once per pace."""
    name = json.loads(await there.ask("POST", "/episodes", {}))["id"]
    due, step = first, 0
    while due < until:
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        for path, told in (("act", {"observation": SEEN}), ("observe", {"reward": REWARD})):
            begun = time.perf_counter()
            answer = await there.ask("POST", f"/episodes/{name}/{path}", told)
            times.append(time.perf_counter() - begun)
            if json.loads(answer)["time"] != step + (path == "observe"):
                raise RuntimeError(f"step {step} of a session was answered with {answer!r}")
        due, step = due + pace, step + 1
    await there.ask("DELETE", f"/episodes/{name}")


async def measure_sessions(port: int, count: int, pace: float, seconds: float) -> dict[str, object]:
    times: list[float] = []
    connections = [await Connection("127.0.0.1", port).open() for _ in range(count)]
    begin = time.perf_counter() + 3
    offsets = np.random.default_rng(0).uniform(0, pace, count)
    await asyncio.gather(
        *(
            keep_deciding(there, begin + offset, begin + seconds, pace, times)
            for there, offset in zip(connections, offsets, strict=True)
        )
    )
    quantiles = {f"p{q:g}_ms": round(1e3 * float(np.quantile(times, q / 100)), 2) for q in (50, 99, 99.9)}
    for there in connections:
        there.writer.close()
    return {
        "sessions": count,
        "pace_seconds": pace,
        "requests": len(times),
        "requests_per_second": len(times) / seconds,
        **quantiles,
        "p99_below_50_ms": quantiles["p99_ms"] < 50,
    }


async def measure_memory(port: int, process: int, count: int, limit: float) -> dict[str, object]:
    """Whole episodes of one step over HTTP, by eight clients."""
    done, until, begun = 0, time.perf_counter() + limit, time.perf_counter()
    rows: list[tuple[int, float]] = []

    async def client() -> None:
        nonlocal done
        there = await Connection("127.0.0.1", port).open()
        while done < count and time.perf_counter() < until:
            if done % max(1, count // 20) == 0:
                rows.append((done, resident(process)))
            done += 1
            name = json.loads(await there.ask("POST", "/episodes", {}))["id"]
            await there.ask("POST", f"/episodes/{name}/act", {"observation": SEEN})
            await there.ask("POST", f"/episodes/{name}/observe", {"reward": REWARD})
            await there.ask("DELETE", f"/episodes/{name}")
        there.writer.close()

    await asyncio.gather(*(client() for _ in range(8)))
    rows.append((done, resident(process)))
    return {
        "episodes": done,
        "seconds": round(time.perf_counter() - begun),
        "server_mib_by_episode": [[episodes, round(mib, 1)] for episodes, mib in rows],
    }


def measure_service(path: Path, count: int) -> dict[str, object]:
    """Episodes that nobody ends, in this process: the oldest must be forgotten."""
    now = 0.0
    service = Service(Runner.load(path), sessions=1000, idle=500, clock=lambda: now)
    rows: list[tuple[int, float]] = []
    for episode in range(count):
        if episode % max(1, count // 10) == 0:
            rows.append((episode, resident(os.getpid())))
        now += 1
        name = service.start()
        service.act(name, SEEN)
        service.observe(name, REWARD)
    rows.append((count, resident(os.getpid())))
    return {
        "episodes": count,
        "open_at_the_end": len(service),
        "evicted": service.evicted,
        "process_mib_by_episode": [[episodes, round(mib, 1)] for episodes, mib in rows],
    }


def resident(process: int) -> float:
    """MiB in memory."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def start_server(path: Path, log: Path) -> tuple[subprocess.Popen[bytes], int]:
    with log.open("w") as file:
        server = subprocess.Popen(
            [sys.executable, "-m", "aetdice_runner", str(path), "--port", "0"], stderr=file
        )
    until = time.monotonic() + WAIT
    while time.monotonic() < until and server.poll() is None:
        if found := re.search(r"serving on http://[^:]+:(\d+)\n", log.read_text()):
            return server, int(found[1])
        time.sleep(0.05)
    server.kill()
    raise RuntimeError(f"no server: {log.read_text()}")


def measure_server(path: Path, folder: Path, options: argparse.Namespace) -> dict[str, dict[str, object]]:
    """The parts that need a server, and how it stops."""
    server, port = start_server(path, folder / "log")
    found: dict[str, dict[str, object]] = {}
    try:
        if "sessions" in options.parts:
            given = options.sessions, options.pace, options.seconds
            found["sessions"] = asyncio.run(measure_sessions(port, *given))
        if "memory" in options.parts:
            found["memory"] = asyncio.run(measure_memory(port, server.pid, options.episodes, options.limit))
        server.terminate()
        stopped = server.wait(timeout=WAIT)
    finally:
        server.kill()
        server.wait(timeout=WAIT)
    return {part: {**each, "exit_code_after_sigterm": stopped} for part, each in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--pace", type=float, default=4.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--episodes", type=int, default=100_000)
    parser.add_argument("--limit", type=float, default=1200.0)
    parser.add_argument("--note", default="")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    known = json.loads(options.out.read_text()) if options.out is not None and options.out.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        path, before = Path(folder) / "policy.onnx", os.getloadavg()[0]
        write_policy(path)
        found: dict[str, dict[str, object]] = {}
        if "runner" in options.parts:
            found["runner"] = {**measure_runner(path)}
        if {"sessions", "memory"} & set(options.parts):
            found |= measure_server(path, Path(folder), options)
        if "service" in options.parts:
            found["service"] = measure_service(path, options.episodes)
    packages = ("onnxruntime", "starlette", "uvicorn")
    facts = {
        "note": options.note,
        "load_average_before": round(before, 2),
        "load_average_after": round(os.getloadavg()[0], 2),
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "versions": {**versions(), **{name: package_version(name) for name in packages}},
    }
    network = {"observations": SIZE, "objectives": OBJECTIVES, "hidden": HIDDEN, "actions": ACTIONS}
    result = {**known, "network": network, **{part: {**each, **facts} for part, each in found.items()}}
    if options.out is not None:
        write_json(options.out, {**result, "commit": code_commit()})
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
