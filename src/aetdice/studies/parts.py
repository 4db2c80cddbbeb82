"""Long studies in parts: each is saved when done, skipped when saved, and merged by reading the files."""

import contextlib
import datetime
import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

from aetdice.errors import InputError
from aetdice.files import versions, write_json
from aetdice.progress import Progress

FORMAT = 2
"""Of `summary.json`; experiments/convert_results.py converts what version 0.1 wrote."""
PARTS, SUMMARY = "parts", "summary.json"
MADE = ("facts", "commit", "date", "device", "seconds", "versions")
"""What a part's file says of how it was made."""
SAMPLES = "samples"
"""Of results: what has an entry for each of many episodes."""
Results = Mapping[str, Mapping[str, Any]]
"""What each part that is done has found."""
Work = Callable[[Path, Progress], dict[str, Any]]
"""Computes a part's results; the folder is for its own files."""


@dataclass(frozen=True)
class Part:
    """A piece of a study that fits into one sitting."""

    name: str
    facts: dict[str, Any]
    """All that its results depend on, as JSON has it."""
    work: Work
    after: tuple[str, ...] = ()
    """The parts that it reads."""
    members: int = 0
    """How many it trains, about; the largest parts begin first."""


def part_file(folder: Path, part: Part) -> Path:
    """In a study's folder: what a part has found, once it is done."""
    return folder / PARTS / f"{part.name}.json"


def do_part(part: Part, own: Path, progress: Progress | None = None) -> None:
    """Compute and write what it finds, beside the folder of its own files."""

    def named(stage: str, step: int, total: int, metrics: dict[str, Any]) -> None:
        if progress:
            progress(f"{part.name} {stage}", step, total, metrics)

    started = datetime.datetime.now(datetime.UTC)
    found = part.work(own, named)
    seconds = (datetime.datetime.now(datetime.UTC) - started).total_seconds()
    device = jax.devices()[0].device_kind
    made = (part.facts, code_commit(), started.date().isoformat(), device, seconds, versions())
    write_json(own.parent / f"{part.name}.json", {**dict(zip(MADE, made, strict=True)), "results": found})


def read_results(folder: Path, part: Part) -> dict[str, Any]:
    """What another part that must be done first has found."""
    path = folder / f"{part.name}.json"
    if not path.is_file():
        raise InputError(f"{path} is missing: do the part {part.name} first, or bring its file and folder")
    return read_part(path, part)


def write_summary(folder: Path, content: Mapping[str, Any]) -> None:
    """What the tables show, and how each part was made; without samples, so that it can be kept."""
    write_json(folder / SUMMARY, {"format": FORMAT, **without_samples(content), "made": made_in(folder)})


def made_in(folder: Path) -> dict[str, dict[str, Any]]:
    """By part how it was made."""
    made = {}
    for path in sorted((folder / PARTS).glob("*.json")):
        with contextlib.suppress(KeyError, TypeError, ValueError):  # somebody else's file
            part = json.loads(path.read_text(encoding="utf-8"))
            made[path.stem] = {key: part[key] for key in MADE}
    return made


def read_summary(folder: Path) -> dict[str, Any]:
    """What `write_summary` wrote."""
    content: dict[str, Any] = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
    return content


def without_samples(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {name: without_samples(entry) for name, entry in content.items() if name != SAMPLES}
    return [without_samples(entry) for entry in content] if isinstance(content, list) else content


def code_commit() -> str | None:
    """The commit of this code, with + where files were changed after it; None outside a repository."""
    git = ["git", "-C", str(Path(__file__).parent)]
    try:
        commit, changes = (
            subprocess.run([*git, *words], capture_output=True, text=True, check=True).stdout.strip()
            for words in (("rev-parse", "--short=12", "HEAD"), ("status", "--porcelain", "-uno", "."))
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{commit}+" if changes else commit


def read_part(path: Path, part: Part) -> dict[str, Any]:
    """What it found; `InputError` for a file that is damaged or was made with other settings."""
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        same = content["facts"] == json.loads(json.dumps(part.facts))
        results: dict[str, Any] = content["results"]
        if not isinstance(results, dict):
            raise ValueError("its results are no object")
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{path} is not a part of a study: {error}; delete it to make it again") from error
    if not same:
        raise InputError(f"{path} was made with other settings; choose another folder or delete it")
    return results
