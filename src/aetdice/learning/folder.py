"""The folder of a run: what was asked for, metrics and checkpoint between, policies and result at the end."""

import json
from collections.abc import Mapping
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
ANYTHING = object
ASKED: dict[str, Any] = {
    "dataset": dict, "objectives": list, "algorithm": str, "horizon": int, "sweeps": dict,
    "learning_rate": ANYTHING, "seed": ANYTHING, "transform": ANYTHING, "settings": dict, "notes": dict,
}  # fmt: skip
"""What stands in every request, and its type."""
TOLD: dict[str, Any] = {"members": list, "by_objective": list, "seconds": (int, float), "versions": dict}
"""What stands in every result."""
OPTIONAL: dict[str, Any] = {"stages": dict, "split": dict, "chosen": dict}
"""What stands in some, of either."""
WORDS: dict[Any, str] = {
    dict: "an object",
    list: "a list",
    str: "a word",
    int: "a whole number",
    (int, float): "a number",
}


def check_run(folder: Path, hint: str = "") -> None:
    """`InputError` for what is not the folder of a run, with one that is inside, or else the hint."""
    if (folder / REQUEST).is_file():
        return
    if not folder.exists():
        raise InputError(f"{folder} is not a run: there is no such folder{hint}")
    inside = sorted(path.parent for path in folder.glob(f"*/{REQUEST}")) if folder.is_dir() else []
    hint = f"; a run inside it is {inside[0]}" if inside else hint
    raise InputError(f"{folder} is not a run: it has no {REQUEST}{hint}")


def check_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file, not a folder")


def write_request(folder: Path, request: dict[str, Any]) -> None:
    write_json(folder / REQUEST, {**request, "format": FORMAT})


def read_request(folder: Path) -> dict[str, Any]:
    """What a run was asked for; that of version 0.1 is converted."""
    path = folder / REQUEST
    check_run(folder)
    try:
        content = _object(path)
        found = content.get("format", 1)
        if found not in (1, FORMAT):
            raise ValueError(f"it has format {found}, this version reads {FORMAT}")
        request: dict[str, Any] = converted_request(content) if found == 1 else content
        _check(request, ASKED)
        if not isinstance(request["dataset"].get("origin", 0), dict | None):
            raise ValueError("its 'dataset' has no 'origin' that is an object")
        for entry in request["objectives"]:
            _check(entry, {"name": str})
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
        content = _object(path)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    try:
        _check(content, TOLD)
        for entry in content["by_objective"]:
            _check(entry, {})
    except ValueError as error:
        raise InputError(f"{path} is not the result of a run: {error}") from error
    return content


def _object(path: Path) -> dict[str, Any]:
    content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict):
        raise ValueError("it is no object")
    return content


def _check(content: Any, expected: Mapping[str, Any]) -> None:
    """`ValueError` for what is missing, empty or of another type."""
    if not isinstance(content, dict):
        raise ValueError(f"{json.dumps(content)[:40]} stands where an object should")
    if missing := [name for name in expected if name not in content]:
        raise ValueError(f"it has no {missing[0]!r}")
    for name, kind in {**expected, **OPTIONAL}.items():
        if name not in content:
            continue
        if not isinstance(content[name], kind):
            raise ValueError(f"its {name!r} is not {WORDS[kind]}")
        if kind is list and not content[name]:
            raise ValueError(f"its {name!r} is empty")


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
