"""Compiled programs are kept in the user's cache folder, so that a command compiles only what is new."""

import hashlib
import os
import platform
import sys
import warnings
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from pathlib import Path

SETTING = "AETDICE_CACHE"
"""An environment variable: the folder to use, or `off`."""
FOLDER, LEAST_SECONDS = "JAX_COMPILATION_CACHE_DIR", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"
"""JAX's own variables, which come first where a user has set them."""
WORTHWHILE = "0.05"
"""Seconds of compiling from which a program is kept: below, a file costs as much as it saves."""
LIMIT = 1 << 30
"""Bytes above which the oldest programs go."""


def keep_programs(environment: MutableMapping[str, str] = os.environ) -> Path | None:
    """Tell JAX, which must not have been imported, where programs are kept; None where they are not.

    A folder that cannot be made or written is no mistake: everything works without it.
    """
    if FOLDER in environment or (base := cache_folder(environment)) is None:
        return None
    try:
        folder = base / "programs" / _processor()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK | os.X_OK)
        drop_oldest(folder)
    except OSError:
        return None
    if not writable:
        return None
    # A program that was cut off while it was written, or a full disk: it is compiled again, quietly.
    warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache entry")
    environment[FOLDER] = str(folder)
    environment.setdefault(LEAST_SECONDS, WORTHWHILE)
    return folder


def drop_oldest(folder: Path, limit: int = LIMIT) -> None:
    """Until half of the limit is left, where it is exceeded; another command may do the same."""
    found = [(entry.stat().st_mtime, entry.stat().st_size, entry.path) for entry in os.scandir(folder)]
    total = sum(size for _, size, _ in found)
    if total <= limit:
        return
    for _, size, path in sorted(found):
        with suppress(FileNotFoundError):
            os.unlink(path)
        total -= size
        if 2 * total <= limit:
            return


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Where this user's programs keep what they can make again; None where nothing is to be kept."""
    said = environment.get(SETTING)
    if said == "off":
        return None
    try:
        if said:
            return Path(said).expanduser().resolve()
        if sys.platform == "win32":
            return Path(environment.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "aetdice"
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches" / "aetdice"
        return Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "aetdice"
    except RuntimeError:  # a user without a home
        return None


def _processor() -> str:
    """What code is compiled for: computers of different kinds may share a home."""
    kind = [platform.machine(), platform.processor()]
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        kind += [next((line for line in lines if line.startswith(("flags", "Features"))), "")]
    return hashlib.sha256("\n".join(kind).encode()).hexdigest()[:12]
