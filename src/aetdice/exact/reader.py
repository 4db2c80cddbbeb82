"""Read a MOMDP that a user wrote as a JSON or NPZ file."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from aetdice.errors import InputError
from aetdice.exact.momdp import TabularMOMDP

REQUIRED = ("transition", "reward", "initial", "horizon")
OPTIONAL = ("terminal", "objectives")


def read_momdp(path: Path) -> TabularMOMDP:
    """The MOMDP in a `.json` or `.npz` file with the arguments of `TabularMOMDP.from_arrays`."""
    if not path.is_file():
        raise InputError(f"no such file: {path}")
    readers = {".json": _read_json, ".npz": _read_npz}
    if path.suffix not in readers:
        raise InputError(
            f"{path.name}: a problem is read from .json or .npz, not from {path.suffix or 'this'}"
        )
    content = readers[path.suffix](path)
    unknown = sorted(set(content) - {*REQUIRED, *OPTIONAL})
    missing = [name for name in REQUIRED if name not in content]
    if unknown or missing:
        problem = f"unknown key {unknown[0]!r}" if unknown else f"key {missing[0]!r} is missing"
        raise InputError(
            f"{path.name}: {problem}; keys: {', '.join(REQUIRED)}; optional: {', '.join(OPTIONAL)}"
        )
    try:
        arrays = {name: np.asarray(content[name]) for name in content if name != "objectives"}
        horizon = arrays.pop("horizon")
        if horizon.ndim or horizon.dtype.kind not in "iu":
            raise ValueError(f"the horizon must be a whole number, not {horizon}")
        if any(array.dtype == object or array.dtype.kind not in "biuf" for array in arrays.values()):
            raise ValueError("an entry is not a number")
    except (ValueError, TypeError) as error:
        raise InputError(f"{path.name}: ragged or non-numeric arrays ({error})") from error
    objectives = _names(path, content["objectives"]) if "objectives" in content else None
    return TabularMOMDP.from_arrays(horizon=int(horizon), objectives=objectives, **arrays)


def _names(path: Path, names: Any) -> tuple[str, ...]:
    names = np.asarray(names).tolist() if isinstance(names, np.ndarray) else names
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(f"{path.name}: objectives must be a list of names, not {names!r}")
    return tuple(names)


def _read_json(path: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # malformed, not UTF-8, or a number without end
        raise InputError(f"{path.name} is not valid JSON: {error}") from error
    if not isinstance(content, dict):
        raise InputError(f"{path.name}: a problem is one JSON object, not a {type(content).__name__}")
    return content


def _read_npz(path: Path) -> Mapping[str, Any]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return dict(archive)
    except Exception as error:
        raise InputError(f"{path.name} is not a plain NPZ archive of arrays: {error}") from error
