"""Shards: runs of rows in the array files of a store, written as episodes come."""

import contextlib
import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from jaxtyping import Shaped

from aetdice.data.episodes import Episode, check_alike, read_episode
from aetdice.errors import InputError

READ_BYTES = 1 << 20


class _Rows:
    """An .npy file that grows by rows; its header leaves room for the final count."""

    def __init__(self, path: Path, first: Shaped[np.ndarray, "rows *s"]) -> None:
        self._file: BinaryIO = path.open("w+b")
        self._dtype, self._shape, self._count = first.dtype, first.shape[1:], 0
        self._header()

    def append(self, rows: Shaped[np.ndarray, "rows *s"]) -> None:
        self._file.write(np.ascontiguousarray(rows, dtype=self._dtype).data)
        self._count += len(rows)

    def finish(self) -> None:
        """Say how many rows there are; on the disk when this returns."""
        self._file.seek(0)
        self._header()
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()

    def _header(self) -> None:
        entries = {
            "descr": np.lib.format.dtype_to_descr(self._dtype),
            "fortran_order": False,
            "shape": (self._count, *self._shape),
        }
        np.lib.format.write_array_header_1_0(self._file, entries)


def write_shard(folder: Path, episodes: Iterable[Episode]) -> int:
    """Write every array of a store; returns the number of objectives."""
    files: dict[str, _Rows] = {}
    first: Episode | None = None
    with contextlib.ExitStack() as opened:
        for index, given in enumerate(episodes):
            episode = read_episode(given, index)
            first = episode if first is None else first
            check_alike(index, episode, first)
            for name, rows in _rows(episode).items():
                if name not in files:
                    files[name] = opened.enter_context(
                        contextlib.closing(_Rows(folder / f"{name}.npy", rows))
                    )
                files[name].append(rows)
        for file in files.values():
            file.finish()
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


def shards_of(entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The runs of bytes that an array was written in, the header with the first."""
    whole = {"rows": entry["shape"][0], "bytes": entry["bytes"], "sha256": entry.get("sha256")}
    return list(entry.get("shards", [whole]))


def digest(file: BinaryIO, count: int) -> str:
    """SHA-256 of the next bytes of a file."""
    found = hashlib.sha256()
    while count > 0 and (block := file.read(min(count, READ_BYTES))):
        found.update(block)
        count -= len(block)
    return found.hexdigest()
