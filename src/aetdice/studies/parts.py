"""Long studies in parts: each is saved when done, skipped when saved, and merged by reading the files."""

import contextlib
import datetime
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

from aetdice.errors import InputError
from aetdice.files import versions, write_json
from aetdice.learning.checkpointing import Report

PARTS = "parts"
MADE = ("facts", "date", "device", "seconds", "versions")
"""What a part's file says of how it was made."""
EPISODES = ("returns", "quantiles", "lengths", "ways")
"""Of results: what has a number for each of many episodes."""
Work = Callable[[Path, Report], dict[str, Any]]
"""Computes a part's results; the folder is for its own checkpoints."""


@dataclass(frozen=True)
class Part:
    """A piece of a study that fits into one sitting."""

    name: str
    facts: dict[str, Any]
    """All that its results depend on, as JSON has it."""
    work: Work


def complete(
    parts: Sequence[Part], folder: Path, only: Sequence[str] = (), report: Report | None = None
) -> dict[str, dict[str, Any]]:
    """The results of all parts that are done, after doing the missing ones or those named in `only`."""
    names = [part.name for part in parts]
    for name in only:
        if name not in names:
            raise InputError(f"no part is called {name!r}; parts: {', '.join(names)}")
    results = {}
    for part in parts:
        path = folder / PARTS / f"{part.name}.json"
        if path.is_file():
            results[part.name] = _read(path, part)
        elif not only or part.name in only:
            results[part.name] = _do(path, part, report)
    return results


def read_results(folder: Path, part: Part) -> dict[str, Any]:
    """What another part that must be done first has found."""
    path = folder / f"{part.name}.json"
    if not path.is_file():
        raise InputError(f"{path} is missing: do the part {part.name} first, or bring its file and folder")
    return _read(path, part)


def write_summary(folder: Path, content: Mapping[str, Any]) -> None:
    """What the tables show, and how each part was made; without episodes, so that it can be kept."""
    made = {}
    for path in sorted((folder / PARTS).glob("*.json")):
        with contextlib.suppress(KeyError, TypeError, ValueError):  # somebody else's file
            part = json.loads(path.read_text(encoding="utf-8"))
            made[path.stem] = {key: part[key] for key in MADE}
    write_json(folder / "summary.json", {**_without_episodes(content), "made": made})


def _without_episodes(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {name: _without_episodes(entry) for name, entry in content.items() if name not in EPISODES}
    return [_without_episodes(entry) for entry in content] if isinstance(content, list) else content


def _do(path: Path, part: Part, report: Report | None) -> dict[str, Any]:
    def named(stage: str, step: int, total: int, metrics: dict[str, Any]) -> None:
        if report:
            report(f"{part.name} {stage}", step, total, metrics)

    started = datetime.datetime.now(datetime.UTC)
    found = part.work(path.with_suffix(""), named)
    seconds = (datetime.datetime.now(datetime.UTC) - started).total_seconds()
    device = jax.devices()[0].device_kind
    made = (part.facts, started.date().isoformat(), device, seconds, versions())
    write_json(path, {**dict(zip(MADE, made, strict=True)), "results": found})
    return _read(path, part)


def _read(path: Path, part: Part) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        same = content["facts"] == json.loads(json.dumps(part.facts))
        results: dict[str, Any] = content["results"]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} is not a part of a study: {error}; delete it to make it again") from error
    if not same:
        raise InputError(f"{path} was made with other settings; choose another folder or delete it")
    return results
