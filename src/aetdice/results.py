"""Result files: self-describing, and written whole or not at all."""

import json
import os
import platform
import tempfile
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Shaped


def versions() -> dict[str, str]:
    """What a result depends on."""
    packages = ("aetdice", "jax", "equinox", "optax", "numpy", "scipy")
    return {"python": platform.python_version(), **{name: package_version(name) for name in packages}}


def package_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def write_text(path: Path, text: str) -> None:
    write_whole(path, lambda partial: partial.write_text(text, encoding="utf-8"))


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    write_text(path, json.dumps(content, indent=2, allow_nan=False) + "\n")


def write_arrays(path: Path, arrays: Mapping[str, Shaped[np.ndarray, "..."]]) -> None:
    """Plain arrays in one NPZ file."""

    def write(partial: Path) -> None:
        with partial.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)

    write_whole(path, write)


def write_whole(path: Path, write: Callable[[Path], Any]) -> None:
    """Write beside the target and rename: a reader sees the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    partial = Path(name)
    try:
        write(partial)
        os.chmod(partial, 0o644)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
