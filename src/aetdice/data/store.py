"""The episode store: a folder of plain arrays and a manifest, hashed, written whole, memory-mapped.

manifest.json       objectives, facts, and shape, type, size and SHA-256 of every array
observations.npy    (steps + episodes, …)
actions.npy         (steps, …)
rewards.npy         (steps, objectives), float64
lengths.npy, terminated.npy, truncated.npy    one entry per episode

Episodes that were appended (`data/appending.py`) are further shards: rows at the end of every array, each
with a SHA-256 of its own. A store of one shard has version 1; of several 2, whose arrays have the rows that
the manifest says: the header of a file counts those of the first shard.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Shaped

from aetdice.data.episodes import Episode, Episodes
from aetdice.data.shards import digest, shards_of, write_shard
from aetdice.errors import InputError

FORMAT = "aetdice-episodes"
WHOLE, SHARDED = 1, 2
"""Versions: of a store that was written at once, and of one with shards."""
MANIFEST = "manifest.json"
APPENDING = ".appending"
"""While this file is there, arrays may be longer than the manifest says; the rest does not count."""
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
        width = write_shard(partial, episodes)
        names = tuple(objectives or (f"r{i}" for i in range(width)))
        map_episodes(partial, names)
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
    manifest = read_manifest(path)
    try:
        return _checked(path, manifest, verify)
    except InputError:
        if read_manifest(path) == manifest:
            raise
    return load_episodes(path, verify=verify)  # a writer was done in the middle of it


def _checked(path: Path, manifest: Mapping[str, Any], verify: bool | None) -> Episodes:
    arrays = manifest["arrays"]
    total = sum(entry["bytes"] for entry in arrays.values())
    for name in ARRAYS:
        _check_file(path / f"{name}.npy", arrays[name])
    if verify or (verify is None and total <= VERIFIED_BYTES):
        for name in ARRAYS:
            _check_digests(path / f"{name}.npy", arrays[name])
    try:
        return map_episodes(path, tuple(manifest["objectives"]), arrays)
    except InputError as error:
        raise damaged(path, str(error)) from error


def load_facts(path: str | Path) -> dict[str, Any]:
    """What was recorded about a store's episodes."""
    return read_manifest(Path(path))["facts"]


# Writing.


def _write_manifest(folder: Path, objectives: tuple[str, ...], facts: Mapping[str, Any]) -> None:
    content: dict[str, Any] = {
        "format": FORMAT,
        "version": WHOLE,
        "written_by": {"aetdice": _release(), "numpy": np.__version__},
        "objectives": list(objectives),
        "facts": dict(facts),
        "arrays": {name: _entry(folder / f"{name}.npy") for name in ARRAYS},
    }
    write_signed(folder / MANIFEST, content)


def write_signed(path: Path, content: dict[str, Any]) -> None:
    """A manifest with its own SHA-256, on the disk when this returns."""
    try:
        text = json.dumps({**content, "sha256": _signature(content)}, indent=2, allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        raise InputError(f"the facts of a store must be JSON: {error}") from error
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _release() -> str:
    try:
        return version("aetdice")
    except PackageNotFoundError:
        return "not installed"


def _entry(path: Path) -> dict[str, Any]:
    array, size = np.load(path, mmap_mode="r", allow_pickle=False), path.stat().st_size
    with path.open("rb") as file:
        found = digest(file, size)
    return {"shape": list(array.shape), "dtype": array.dtype.str, "bytes": size, "sha256": found}


# Reading.


def map_episodes(
    folder: Path, objectives: tuple[str, ...], entries: Mapping[str, Any] | None = None
) -> Episodes:
    """The arrays of a folder; the large ones stay on disk. `entries` of a manifest count all shards."""
    arrays: dict[str, Any] = {
        name: _map(folder / f"{name}.npy", None if entries is None else entries[name]) for name in ARRAYS
    }
    for name in ("lengths", "terminated", "truncated"):
        arrays[name] = np.array(arrays[name])
    return Episodes(**arrays, objectives=objectives)


def _map(path: Path, entry: Mapping[str, Any] | None) -> Shaped[np.ndarray, "..."]:
    first = np.load(path, mmap_mode="r", allow_pickle=False)
    if entry is None or "shards" not in entry:
        return np.asarray(first)
    shape = tuple(entry["shape"])
    return np.asarray(np.memmap(path, first.dtype, "r", offset=first.offset, shape=shape))


def read_manifest(folder: Path) -> dict[str, Any]:
    """What a store says of itself; `InputError` if it is none or was changed."""
    path = folder / MANIFEST
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(f"{folder} is not an episode store: it has no {MANIFEST}") from error
    except (OSError, ValueError) as error:
        raise damaged(path, f"it is not readable JSON ({error})") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{path} does not describe an episode store")
    if content.get("version") not in (WHOLE, SHARDED):
        raise InputError(
            f"{path} has version {content.get('version')}, but this release reads versions up to {SHARDED}; "
            "read it with the release that wrote it"
        )
    if content.pop("sha256", None) != _signature(content) or set(content["arrays"]) != set(ARRAYS):
        raise damaged(path, "its SHA-256 is not its own")
    return content


def _check_file(path: Path, entry: Mapping[str, Any]) -> None:
    """The file is there, whole, and the array that the manifest describes."""
    if not path.is_file():
        raise damaged(path, "it is missing")
    size, expected = path.stat().st_size, entry["bytes"]
    if size < expected or (size > expected and not (path.parent / APPENDING).exists()):
        raise damaged(path, f"it has {size} bytes instead of {expected}{_cut_shards(entry, size)}")
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # NumPy's header reader raises a tokenizer's errors, too
        raise damaged(path, f"it is not an array ({error})") from error
    shape = [shards_of(entry)[0]["rows"], *entry["shape"][1:]]
    if list(array.shape) != shape or array.dtype.str != entry["dtype"]:
        raise damaged(path, "its shape or type is not the manifest's")


def _cut_shards(entry: Mapping[str, Any], size: int) -> str:
    """Which shards a shorter file has lost."""
    ends = np.cumsum([shard["bytes"] for shard in shards_of(entry)])
    lost = int(np.sum(ends > size))
    return f", and so {lost} of its {len(ends)} shards are not whole" if lost and len(ends) > 1 else ""


def _check_digests(path: Path, entry: Mapping[str, Any]) -> None:
    shards = shards_of(entry)
    with path.open("rb") as file:
        for index, shard in enumerate(shards):
            which = f" of shard {index + 1} of {len(shards)}" if len(shards) > 1 else ""
            if digest(file, shard["bytes"]) != shard["sha256"]:
                raise damaged(path, f"its SHA-256{which} is not the manifest's")


def _signature(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def damaged(path: Path, what: str) -> InputError:
    """That a file is not what was written."""
    return InputError(f"{path} is damaged: {what}; copy or collect the dataset again")
