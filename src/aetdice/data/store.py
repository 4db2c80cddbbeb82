"""The episode store: a folder of plain arrays and a manifest, hashed, written whole, memory-mapped.

manifest.json       objectives, facts, and shape, type, size and SHA-256 of every array
observations.npy    (steps + episodes, …)
actions.npy         (steps, …)
rewards.npy         (steps, objectives), float64
lengths.npy, terminated.npy, truncated.npy    one entry per episode
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from jaxtyping import Shaped

from aetdice.data.episodes import Episode, Episodes, check_alike, read_episode
from aetdice.errors import InputError

FORMAT = "aetdice-episodes"
VERSION = 1
MANIFEST = "manifest.json"
ARRAYS = ("observations", "actions", "rewards", "lengths", "terminated", "truncated")
VERIFIED_BYTES = 1 << 30
"""Stores up to this size are hashed whenever they are loaded, unless told otherwise."""


def save_episodes(
    path: str | Path,
    episodes: Iterable[Episode],
    *,
    objectives: Sequence[str] | None = None,
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Write episodes as they come, one in memory at a time, to a folder that must not exist yet.

    `facts` is what a reader should know of the data, as JSON: how it was made, from which seed,
    with which versions and transforms. The folder appears when everything in it is complete.
    """
    path = Path(path)
    if path.exists():
        raise InputError(f"{path} exists; delete it or choose another name")
    if objectives is None and isinstance(episodes, Episodes):
        objectives = episodes.objectives
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        width = _write_arrays(partial, episodes)
        names = tuple(objectives or (f"r{i}" for i in range(width)))
        _episodes(partial, names)
        _write_manifest(partial, names, facts or {})
        os.chmod(partial, 0o755)
        os.rename(partial, path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def load_episodes(path: str | Path, *, verify: bool | None = None) -> Episodes:
    """The episodes of a store, memory-mapped: pages are read when they are used.

    `verify` compares every array with its SHA-256, which reads all of it; by default up to
    1 GiB. Sizes, shapes and types are always compared.
    """
    path = Path(path)
    manifest = _manifest(path)
    total = sum(entry["bytes"] for entry in manifest["arrays"].values())
    for name in ARRAYS:
        _check_file(path / f"{name}.npy", manifest["arrays"][name])
    if verify or (verify is None and total <= VERIFIED_BYTES):
        for name in ARRAYS:
            if _digest(path / f"{name}.npy") != manifest["arrays"][name]["sha256"]:
                raise _damaged(path / f"{name}.npy", "its SHA-256 is not the manifest's")
    try:
        return _episodes(path, tuple(manifest["objectives"]))
    except InputError as error:
        raise _damaged(path, str(error)) from error


def load_facts(path: str | Path) -> dict[str, Any]:
    """What was recorded about a store's episodes."""
    return _manifest(Path(path))["facts"]


# Writing.


class _Rows:
    """An .npy file that grows by rows; its header leaves room for the final count."""

    def __init__(self, path: Path, first: Shaped[np.ndarray, "rows *s"]) -> None:
        self._file: BinaryIO = path.open("w+b")
        self._dtype, self._shape, self._count = first.dtype, first.shape[1:], 0
        self._header()

    def append(self, rows: Shaped[np.ndarray, "rows *s"]) -> None:
        self._file.write(np.ascontiguousarray(rows, dtype=self._dtype).data)
        self._count += len(rows)

    def close(self) -> None:
        self._file.seek(0)
        self._header()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def _header(self) -> None:
        entries = {
            "descr": np.lib.format.dtype_to_descr(self._dtype),
            "fortran_order": False,
            "shape": (self._count, *self._shape),
        }
        np.lib.format.write_array_header_1_0(self._file, entries)


def _write_arrays(folder: Path, episodes: Iterable[Episode]) -> int:
    """Write every array of a store; returns the number of objectives."""
    files: dict[str, _Rows] = {}
    first: Episode | None = None
    try:
        for index, given in enumerate(episodes):
            episode = read_episode(given, index)
            first = episode if first is None else first
            check_alike(index, episode, first)
            for name, rows in _rows(episode).items():
                if name not in files:
                    files[name] = _Rows(folder / f"{name}.npy", rows)
                files[name].append(rows)
    finally:
        for file in files.values():
            file.close()
    if first is None:
        raise InputError("a dataset needs at least one episode")
    return int(first.rewards.shape[1])


def _rows(episode: Episode) -> dict[str, Shaped[np.ndarray, "rows *s"]]:
    return {
        "observations": episode.observations,
        "actions": episode.actions,
        "rewards": episode.rewards,
        "lengths": np.array([len(episode.rewards)], dtype=np.int64),
        "terminated": np.array([episode.terminated], dtype=bool),
        "truncated": np.array([episode.truncated], dtype=bool),
    }


def _write_manifest(folder: Path, objectives: tuple[str, ...], facts: Mapping[str, Any]) -> None:
    content: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": {"aetdice": _release(), "numpy": np.__version__},
        "objectives": list(objectives),
        "facts": dict(facts),
        "arrays": {name: _entry(folder / f"{name}.npy") for name in ARRAYS},
    }
    try:
        content["sha256"] = _signature(content)
        text = json.dumps(content, indent=2, allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        raise InputError(f"the facts of a store must be JSON: {error}") from error
    with (folder / MANIFEST).open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _release() -> str:
    try:
        return version("aetdice")
    except PackageNotFoundError:
        return "not installed"


def _entry(path: Path) -> dict[str, Any]:
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    return {
        "shape": list(array.shape),
        "dtype": array.dtype.str,
        "bytes": path.stat().st_size,
        "sha256": _digest(path),
    }


# Reading.


def _episodes(folder: Path, objectives: tuple[str, ...]) -> Episodes:
    """The arrays of a folder; the large ones stay on disk."""
    arrays: dict[str, Any] = {name: _map(folder / f"{name}.npy") for name in ARRAYS}
    for name in ("lengths", "terminated", "truncated"):
        arrays[name] = np.array(arrays[name])
    return Episodes(**arrays, objectives=objectives)


def _map(path: Path) -> Shaped[np.ndarray, "..."]:
    return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(f"{folder} is not an episode store: it has no {MANIFEST}") from error
    except (OSError, ValueError) as error:
        raise _damaged(path, f"it is not readable JSON ({error})") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{path} does not describe an episode store")
    if content.get("version") != VERSION:
        raise InputError(
            f"{path} has version {content.get('version')}, but this release reads version {VERSION}; "
            "read it with the release that wrote it"
        )
    if content.pop("sha256", None) != _signature(content) or set(content["arrays"]) != set(ARRAYS):
        raise _damaged(path, "its SHA-256 is not its own")
    return content


def _check_file(path: Path, entry: Mapping[str, Any]) -> None:
    """The file is there, whole, and the array that the manifest describes."""
    if not path.is_file():
        raise _damaged(path, "it is missing")
    if path.stat().st_size != entry["bytes"]:
        raise _damaged(path, f"it has {path.stat().st_size} bytes instead of {entry['bytes']}")
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # NumPy's header reader raises a tokenizer's errors, too
        raise _damaged(path, f"it is not an array ({error})") from error
    if list(array.shape) != entry["shape"] or array.dtype.str != entry["dtype"]:
        raise _damaged(path, "its shape or type is not the manifest's")


def _signature(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _damaged(path: Path, what: str) -> InputError:
    return InputError(f"{path} is damaged: {what}; copy or collect the dataset again")
