"""Files: versions for every result, written whole or not at all, read without unpickling."""

import json
import os
import platform
import tempfile
import zlib
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar
from zipfile import BadZipFile

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Shaped

from aetdice.errors import InputError

T = TypeVar("T")

DAMAGE = (
    ArithmeticError, AttributeError, BadZipFile, EOFError, MemoryError, RuntimeError, SyntaxError, TypeError,
    ValueError, zlib.error,
)  # fmt: skip
"""What NumPy and zipfile raise for NPZ files that are none, or are no longer whole."""


def versions() -> dict[str, str]:
    """What a result depends on."""
    packages = ("aetdice", "jax", "equinox", "optax", "numpy", "scipy", "mujoco")
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
    """Write beside the target and rename: a reader sees the old file or the new one, a power cut or not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    partial = Path(name)
    try:
        write(partial)
        with partial.open("r+b") as file:
            os.fsync(file.fileno())  # or the name may reach the disk before the content
        os.chmod(partial, 0o644)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def save_tree(path: Path, tree: Any) -> None:
    """Every array leaf, in order."""
    leaves = jax.tree.leaves(eqx.filter(tree, eqx.is_array))
    write_arrays(path, {f"leaf{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)})


def read_arrays(path: Path) -> dict[str, Shaped[np.ndarray, "..."]]:
    """The plain arrays of an NPZ file; `ValueError` where it is anything else."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return dict(archive)
    except DAMAGE as error:
        reason = "" if "allow_pickle" in str(error) else f": {error}"  # advice that nobody should follow
        raise ValueError(f"not a whole NPZ file{reason}") from error


def load_tree(path: Path, like: T) -> T:
    """The leaves of a saved tree in the structure of `like`, which must fit in every shape."""
    arrays, rest = eqx.partition(like, eqx.is_array)
    expected, structure = jax.tree.flatten(arrays)
    try:
        found = read_arrays(path)
        leaves = [found[f"leaf{i}"] for i in range(len(found))]
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{path} is not a checkpoint: {error}") from error
    shapes = [(leaf.shape, leaf.dtype) for leaf in leaves]
    if shapes != [(leaf.shape, leaf.dtype) for leaf in expected]:
        raise InputError(f"{path} was written by a run with another configuration")
    return eqx.combine(jax.tree.unflatten(structure, [jnp.asarray(leaf) for leaf in leaves]), rest)
