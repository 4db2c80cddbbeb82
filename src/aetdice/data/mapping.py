"""Arrays on disk: parts of them in memory while they are looked at, no longer."""

import contextlib
import ctypes
import math
import mmap
import os
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Int, Shaped

from aetdice.errors import InputError

BLOCK = 1 << 16
"""Rows that are looked at together."""
M_MMAP_THRESHOLD, M_ARENA_MAX = -3, -8
SPAN = 1 << 23
"""Bytes of an array that a gathering of rows has in memory at most."""


def mapped(array: Shaped[np.ndarray, "..."]) -> mmap.mmap | None:
    """The file that an array is mapped from, if it is."""
    base: Any = array
    while base is not None and not isinstance(base, mmap.mmap):
        base = getattr(base, "base", None)
    return base


def release(array: Shaped[np.ndarray, "..."]) -> None:
    """Let go of the pages of a mapped array: they count as the process's memory until then.

    Nothing is lost: they are read from the file again when they are needed.
    """
    file = mapped(array)
    if file is not None and hasattr(mmap, "MADV_DONTNEED"):
        file.madvise(mmap.MADV_DONTNEED)


def return_freed_memory() -> None:
    """Have the C library give back what was freed, and from now on large blocks at once.

    glibc keeps blocks of up to 32 MiB, and what compiling took, for every thread by itself.
    """
    with contextlib.suppress(OSError, AttributeError):  # of another library
        library = ctypes.CDLL("libc.so.6")
        library.mallopt(M_MMAP_THRESHOLD, 1 << 18)
        library.mallopt(M_ARENA_MAX, 1)
        library.malloc_trim(0)


def row_blocks(
    array: Shaped[np.ndarray, "rows *s"], size: int = BLOCK
) -> Iterator[tuple[int, Shaped[np.ndarray, "block *s"]]]:
    """The first row and the rows of every block, one of them in memory at a time."""
    for first in range(0, len(array), size):
        yield first, array[first : first + size]
        release(array)


def gather(array: Shaped[np.ndarray, "rows *s"], rows: Int[np.ndarray, " r"]) -> Shaped[np.ndarray, "r *s"]:
    """Rows in rising order, a span of the file in memory at a time."""
    if mapped(array) is None or len(rows) == 0:
        return array[rows]
    found = np.empty((len(rows), *array.shape[1:]), array.dtype)
    span = max(1, SPAN // max(1, array.strides[0]))
    edges = np.searchsorted(rows, np.arange(rows[0], rows[-1] + span + 1, span))
    for first, after in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if after > first:
            np.take(array, rows[first:after], axis=0, out=found[first:after], mode="clip")
            release(array)
    return found


def temporary(shape: tuple[int, ...], dtype: Any) -> Shaped[np.ndarray, "..."]:
    """An array in a temporary file, which is gone with it; `InputError` where there is no room for it."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    with tempfile.TemporaryFile() as file:
        if size and hasattr(os, "posix_fallocate"):  # or writing to it would kill the process
            try:
                os.posix_fallocate(file.fileno(), 0, size)
            except OSError as error:
                raise InputError(
                    f"{tempfile.gettempdir()} has no room for a temporary file of {size / 2**20:.0f} MiB "
                    f"({error.strerror}): make room, or set TMPDIR to another folder"
                ) from error
        return np.asarray(np.memmap(file, dtype, "w+", shape=shape))
