"""Episodes added to a store as a new shard, all of them or none.

The new rows are written beside the store's arrays and checked, then copied behind their ends; they count
from the moment the new manifest replaces the old one. What a writer that was killed has left behind the
ends counts nothing, and the next writer cuts it off.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from aetdice.data.episodes import Episode, Episodes, read_episode
from aetdice.data.shards import digest, shards_of, write_shard
from aetdice.data.store import (
    APPENDING,
    ARRAYS,
    MANIFEST,
    SHARDED,
    map_episodes,
    read_manifest,
    write_signed,
)
from aetdice.errors import InputError

SHARD = ".shard-"
NEXT = ".manifest-"


def append_episodes(path: str | Path, episodes: Iterable[Episode]) -> None:
    """Add episodes to a store; a reader sees all of them or none, whenever it looks.

    One process may append at a time. The shapes of a step must be the store's; numbers are converted to
    its types where that keeps their kind.
    """
    path = Path(path)
    if isinstance(episodes, Episodes):
        check_objectives(path, episodes)
    with _only_writer(path):
        manifest = read_manifest(path)
        _clear(path, manifest)
        shard = Path(tempfile.mkdtemp(prefix=SHARD, dir=path))
        write_shard(shard, _fitted(episodes, manifest["arrays"]))
        map_episodes(shard, tuple(manifest["objectives"]))
        entries = {name: _extend(path, shard, name, manifest["arrays"][name]) for name in ARRAYS}
        _replace_manifest(path, {**manifest, "version": SHARDED, "arrays": entries})


def check_objectives(path: Path, episodes: Episodes) -> None:
    """`InputError` unless the objectives of episodes are a store's."""
    known = read_manifest(path)["objectives"]
    if list(episodes.objectives) != known:
        raise InputError(
            f"{path} has the objectives {', '.join(known)}, the new episodes {', '.join(episodes.objectives)}"
        )


@contextlib.contextmanager
def _only_writer(path: Path) -> Iterator[None]:
    """A locked file says that arrays may be longer than the manifest knows; a dead writer's lock is free."""
    try:
        import fcntl
    except ImportError as error:  # pragma: no cover
        raise InputError("this system has no file locks, so episodes cannot be appended safely") from error
    marker = path / APPENDING
    while True:
        with marker.open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise InputError(f"another process is appending to {path}; wait until it is done") from error
            if not marker.exists() or marker.stat().st_ino != os.fstat(file.fileno()).st_ino:
                continue  # the writer before has removed it in the meantime
            try:
                yield
            finally:
                _clear(path, read_manifest(path))
                marker.unlink()
            return


def _clear(path: Path, manifest: Mapping[str, Any]) -> None:
    """Cut off whatever the manifest does not count."""
    for left in (*path.glob(f"{SHARD}*"), *path.glob(f"{NEXT}*")):
        shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)
    for name in ARRAYS:
        file, size = path / f"{name}.npy", manifest["arrays"][name]["bytes"]
        if file.is_file() and file.stat().st_size > size:
            os.truncate(file, size)


def _fitted(episodes: Iterable[Episode], entries: Mapping[str, Any]) -> Iterator[Episode]:
    """Every episode in the shapes and types of the store."""
    for index, given in enumerate(episodes):
        episode = read_episode(given, index)
        parts = {}
        for part in ("observations", "actions", "rewards"):
            rows, entry = getattr(episode, part), entries[part]
            shape, kind = tuple(entry["shape"][1:]), entry["dtype"]
            if rows.shape[1:] != shape:
                raise InputError(
                    f"episode {index}: {part} have shape {rows.shape[1:]} per step, but {shape} in the store"
                )
            if not np.can_cast(rows.dtype, kind, "same_kind"):
                raise InputError(
                    f"episode {index}: {part} are {rows.dtype}, but {np.dtype(kind)} in the store"
                )
            parts[part] = rows.astype(kind, copy=False)
        yield episode._replace(**parts)


def _extend(path: Path, shard: Path, name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Copy an array's new rows behind its end; returns its entry in the manifest with them."""
    source, target = shard / f"{name}.npy", path / f"{name}.npy"
    if target.stat().st_size != entry["bytes"]:
        raise InputError(f"{target} is damaged: it has {target.stat().st_size} bytes, not {entry['bytes']}")
    rows = np.load(source, mmap_mode="r", allow_pickle=False)
    with source.open("rb") as file, target.open("ab") as end:
        file.seek(rows.offset)
        found = digest(file, rows.nbytes)
        file.seek(rows.offset)
        shutil.copyfileobj(file, end)
        end.flush()
        os.fsync(end.fileno())
    added = {"rows": len(rows), "bytes": rows.nbytes, "sha256": found}
    return {
        "shape": [entry["shape"][0] + len(rows), *entry["shape"][1:]],
        "dtype": entry["dtype"],
        "bytes": entry["bytes"] + rows.nbytes,
        "shards": [*shards_of(entry), added],
    }


def _replace_manifest(path: Path, content: dict[str, Any]) -> None:
    handle, name = tempfile.mkstemp(prefix=NEXT, dir=path)
    os.close(handle)
    write_signed(Path(name), content)
    os.chmod(name, 0o644)
    os.replace(name, path / MANIFEST)
    folder = os.open(path, os.O_RDONLY)  # the rename itself must be on the disk, too
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
