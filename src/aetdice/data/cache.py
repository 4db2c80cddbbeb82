"""Data that are kept in the user's cache folder: copies of remote files, and stores made of large tables."""

import hashlib
import os
from pathlib import Path

from aetdice_command.cache import cache_folder


def kept(kind: str, key: str) -> Path | None:
    """The folder for what has this key, if it is there; None where nothing is kept."""
    folder = _folder(kind, key)
    return folder if folder is not None and folder.is_dir() else None


def make_kept(kind: str, key: str) -> Path | None:
    """The same, made if it is not there; None where nothing can be kept."""
    folder = _folder(kind, key)
    if folder is None:
        return None
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK | os.X_OK) else None


def _folder(kind: str, key: str) -> Path | None:
    base = cache_folder()
    return None if base is None else base / "data" / kind / hashlib.sha256(key.encode()).hexdigest()[:32]
