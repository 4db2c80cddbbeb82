"""The folder of a run: what was asked for, metrics and checkpoint between, policies and result at the end."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from aetdice.errors import InputError
from aetdice.evaluation import Policy, load_policy
from aetdice.files import read_arrays, write_arrays, write_json
from aetdice.learning.legacy import converted_request

FORMAT = 2
REQUEST, RESULT, RETURNS = "config.json", "result.json", "data_returns.npz"
ASKED = (
    "dataset", "objectives", "algorithm", "horizon", "sweeps", "learning_rate", "seed", "transform",
    "settings", "notes",
)  # fmt: skip
"""What stands in every request."""


def check_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file, not a folder")


def write_request(folder: Path, request: dict[str, Any]) -> None:
    write_json(folder / REQUEST, {**request, "format": FORMAT})


def read_request(folder: Path) -> dict[str, Any]:
    """What a run was asked for; that of version 0.1 is converted."""
    path = folder / REQUEST
    if not path.is_file():
        raise InputError(f"{folder} is not a run: it has no {REQUEST}")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        found = content.get("format", 1)
        if found not in (1, FORMAT):
            raise ValueError(f"it has format {found}, this version reads {FORMAT}")
        request: dict[str, Any] = converted_request(content) if found == 1 else content
        if missing := [name for name in ASKED if name not in request]:
            raise ValueError(f"it has no {missing[0]!r}")
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    return request


def read_result(folder: Path) -> dict[str, Any]:
    path = folder / RESULT
    if not path.is_file():
        raise InputError(
            f"{folder} has no {RESULT}: the run has not ended; continue it with aetdice resume {folder}"
        )
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise ValueError("it is no object")
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    return content


def policy_file(folder: Path, kind: str, index: int) -> Path:
    """`kind` is policy or twin."""
    return folder / f"{kind}-{index}.npz"


def save_policies(folder: Path, index: int, policy: Policy, twin: Policy) -> None:
    policy.save(policy_file(folder, "policy", index))
    twin.save(policy_file(folder, "twin", index))


def load_policies(folder: Path, index: int) -> tuple[Policy, Policy]:
    policy, twin = (load_policy(policy_file(folder, kind, index)) for kind in ("policy", "twin"))
    return policy, twin


def save_returns(folder: Path, returns: Float[np.ndarray, "episodes m"]) -> None:
    write_arrays(folder / RETURNS, {"returns": returns})


def load_returns(folder: Path) -> Float[np.ndarray, "episodes m"] | None:
    """The returns of the data; version 0.1 did not keep them."""
    path = folder / RETURNS
    if not path.is_file():
        return None
    try:
        return np.asarray(read_arrays(path)["returns"], np.float64)
    except (KeyError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
