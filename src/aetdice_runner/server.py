"""HTTP for a service: Starlette routes with JSON in and out, run by uvicorn."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from aetdice_runner.errors import InputError, TurnError
from aetdice_runner.metrics import Metrics
from aetdice_runner.openapi import description
from aetdice_runner.runner import Runner
from aetdice_runner.service import IDLE, SESSIONS, FullError, LostError, Service

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import JSONResponse, PlainTextResponse, Response
    from starlette.routing import Route

    from aetdice_runner.protocol import TimedProtocol
except ImportError as missing:
    raise InputError(f"serving needs more packages ({missing}); pip install 'aetdice[serve]'") from missing

KIND = "application/json"
LARGEST_BODY = 64 * 1024
BODY_SECONDS = 10.0
CONNECTIONS = 4096
KEEP_ALIVE = 60
"""Seconds: between two decisions a connection may be silent for a while."""
STOP_SECONDS = 10
CLOSE = {"connection": "close"}
"""Where a body was not read to its end, what follows is no request."""
STATUS = {LostError: 404, TurnError: 409, FullError: 429, InputError: 422}
Endpoint = Callable[[Request], Awaitable[Response]]


def create_app(service: Service, *, largest_body: int = LARGEST_BODY, sweep: float = 5.0) -> Starlette:
    """The routes of a service; every `sweep` seconds idle episodes are forgotten."""
    metrics = Metrics(service)

    async def start(request: Request) -> Response:
        told = await _body(request, {"seed": int, "greedy": bool}, largest_body)
        name = service.start(told.get("seed"), told.get("greedy", False))
        return JSONResponse({"id": name, "horizon": service.runner.horizon}, 201)

    async def act(request: Request) -> Response:
        told = await _body(request, {"observation": object}, largest_body, "observation")
        action, step = service.act(request.path_params["id"], told["observation"])
        return JSONResponse({"action": action, "time": step})

    async def observe(request: Request) -> Response:
        told = await _body(request, {"reward": object, "next_observation": object}, largest_body, "reward")
        name = request.path_params["id"]
        steps, over = service.observe(name, told["reward"], told.get("next_observation"))
        return JSONResponse({"time": steps, "over": over})

    async def end(request: Request) -> Response:
        service.end(request.path_params["id"])
        return Response(status_code=204)

    async def health(_: Request) -> Response:
        facts = service.runner.facts
        known = {name: facts[name] for name in ("aetdice", "sha256", "objective", "horizon")}
        return JSONResponse({"status": "ok", **known, "sessions": len(service)})

    async def show_metrics(_: Request) -> Response:
        return PlainTextResponse(metrics.text(), media_type="text/plain; version=0.0.4")

    async def openapi(_: Request) -> Response:
        return JSONResponse(description(service.runner))

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        sweeping = asyncio.create_task(_sweep(service, sweep))
        yield
        sweeping.cancel()

    routes: list[tuple[str, Endpoint, str]] = [
        ("/episodes", start, "POST"),
        ("/episodes/{id}/act", act, "POST"),
        ("/episodes/{id}/observe", observe, "POST"),
        ("/episodes/{id}", end, "DELETE"),
        ("/health", health, "GET"),
        ("/metrics", show_metrics, "GET"),
        ("/openapi.json", openapi, "GET"),
    ]
    return Starlette(
        routes=[Route(path, _answer(metrics, path, run), methods=[method]) for path, run, method in routes],
        exception_handlers={HTTPException: _refuse},
        lifespan=lifespan,
    )


def _answer(metrics: Metrics, path: str, run: Endpoint) -> Endpoint:
    """The endpoint with its mistakes as 4xx and its time measured."""

    async def answer(request: Request) -> Response:
        begun = time.perf_counter()
        try:
            response = await run(request)
        except InputError as error:
            response = _refusal(_status(error), str(error))
        except HTTPException as error:
            response = _refusal(error.status_code, error.detail, error.headers)
        except ClientDisconnect:
            response = _refusal(400, "the client went away")
        metrics.count(path, response.status_code, time.perf_counter() - begun)
        return response

    return answer


def _status(error: InputError) -> int:
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


async def _refuse(_: Request, error: Exception) -> Response:
    """What Starlette itself refuses: an unknown path, another method."""
    assert isinstance(error, HTTPException)
    return _refusal(error.status_code, error.detail, error.headers)


def _refusal(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse({"error": sentence}, status, headers)


async def _body(request: Request, kinds: dict[str, type], largest: int, *needed: str) -> dict[str, Any]:
    """The request's JSON object, with known entries of the right kinds only."""
    try:
        content = await asyncio.wait_for(_read(request, largest), BODY_SECONDS)
    except TimeoutError as error:
        raise HTTPException(408, f"the body took longer than {BODY_SECONDS:g} s", CLOSE) from error
    if content and request.headers.get("content-type", "").split(";")[0].strip().lower() != KIND:
        raise HTTPException(415, f"the body is JSON: send it with content-type {KIND}")
    try:
        told = json.loads(content or b"{}", parse_constant=_no_constant, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"the body is not JSON: {error}") from error
    if not isinstance(told, dict):
        raise HTTPException(400, "the body is a JSON object")
    for name, value in told.items():
        if name not in kinds:
            raise InputError(f"there is no {name[:40]!r} here; known: {', '.join(kinds)}")
        if value is not None and kinds[name] is not object and type(value) is not kinds[name]:
            raise InputError(f"{name} is of type {kinds[name].__name__}, not {type(value).__name__}")
    if lost := [name for name in needed if name not in told]:
        raise InputError(f"the body needs {lost[0]!r}")
    return {name: value for name, value in told.items() if value is not None or name in needed}


async def _read(request: Request, largest: int) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > largest:
            raise HTTPException(413, f"the body is larger than {largest} bytes", CLOSE)
        parts.append(part)
    return b"".join(parts)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; of two entries with one name, JSON's readers each believe another."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError("an entry is given twice")
    return dict(pairs)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number in JSON")


async def _sweep(service: Service, seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds)
        service.evict()


def _listen(host: str, port: int) -> socket.socket:
    """A bound socket. Its protocol is named, or asyncio leaves Nagle's algorithm on: 40 ms per answer."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(2048)
    except OSError as error:
        listening.close()
        raise InputError(f"{host}:{port} cannot be listened on: {error.strerror or error}") from error
    return listening


def create_server(app: Starlette) -> uvicorn.Server:
    """HTTP/1.1 with bounded headers, connections and waiting."""
    config = uvicorn.Config(
        app,
        http=TimedProtocol,
        ws="none",
        log_level="warning",
        access_log=False,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=STOP_SECONDS,
        server_header=False,
    )
    return uvicorn.Server(config)


def serve(
    runner: Runner,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    sessions: int = SESSIONS,
    idle: float = IDLE,
) -> None:
    """Answer until SIGINT or SIGTERM; then finish what has begun, for at most ten seconds."""
    app = create_app(Service(runner, sessions=sessions, idle=idle))
    if not 0 <= port < 2**16:
        raise InputError(f"a port is a number from 0 to 65535, not {port}")
    listening = _listen(host, port)
    shown = f"[{host}]" if ":" in host else host
    print(f"serving on http://{shown}:{listening.getsockname()[1]}", file=sys.stderr, flush=True)
    server = create_server(app)
    stops = (signal.SIGINT, signal.SIGTERM)
    # uvicorn has handlers of its own while it runs, and raises the signals again afterwards.
    before = [signal.signal(stop, lambda *_: setattr(server, "should_exit", True)) for stop in stops]
    try:
        server.run(sockets=[listening])
    finally:
        for stop, handler in zip(stops, before, strict=True):
            signal.signal(stop, handler)
    print("stopped", file=sys.stderr)
