"""`export_policy`: one file with the network and everything else that it needs to act."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from aetdice.errors import InputError
from aetdice.evaluation import Policy, load_policy
from aetdice.files import package_version, write_whole
from aetdice.learning.folder import policy_file, read_request, read_result
from aetdice.serving.facts import policy_facts
from aetdice.serving.graph import network_model
from aetdice.serving.programs import policy_programs
from aetdice_runner.artefact import KEY, graph_checksum

RESULTS = ("params", "score", "twin_score", "scores", "verdict", "trusted")
"""What a run's result says about a member, as far as it was evaluated."""


def export_policy(policy: Policy, path: Path | str, result: Mapping[str, Any] | None = None) -> None:
    """Write the policy as one file, whole or not at all; `result` (JSON) is kept beside it.

    An .onnx file has a graph that maps observations, accrued rewards and times to the outputs of the head,
    with horizon, names, bounds, transform, versions and checksums in its metadata; `aetdice_runner.Runner`
    reads it. A .jax file has the same as programs of `jax.export`, for batches of any size.
    """
    path = Path(path)
    if path.suffix not in FORMATS:
        raise InputError(f"a policy is exported as {' or '.join(FORMATS)}; {path} has neither suffix")
    content = FORMATS[path.suffix](policy, result)
    write_whole(path, lambda partial: partial.write_bytes(content))


def export_run(source: Path | str, path: Path | str, member: int | None = None) -> dict[str, Any] | None:
    """Export a member of a run folder (by default the selected one) or a policy file; its result."""
    policy, result = find_policy(source, member)
    export_policy(policy, path, result)
    return result


def find_policy(source: Path | str, member: int | None = None) -> tuple[Policy, dict[str, Any] | None]:
    """The policy of a run folder or a file, and what the run's result says about it."""
    source = Path(source)
    if not source.is_dir():
        if member is not None:
            raise InputError(f"{source} is one policy; only a run folder has members")
        return load_policy(source), None
    result, request = read_result(source), read_request(source)
    try:
        rows = result["members"]
        index = result["by_objective"][0]["selected"]["index"] if member is None else member
        if not 0 <= index < len(rows):
            raise InputError(f"the run has members 0 to {len(rows) - 1}, not {index}")
        known = {name: rows[index][name] for name in RESULTS if name in rows[index]}
    except (LookupError, TypeError) as error:
        raise InputError(f"{source} does not hold the result of a run: {error!r}") from error
    policy = load_policy(policy_file(source, "policy", index))
    if names := request["dataset"].get("objectives"):
        policy.details.setdefault("objectives", names)
    return policy, {"member": index, **known}


def policy_model(policy: Policy, result: Mapping[str, Any] | None = None) -> bytes:
    """The ONNX artefact as it stands in the file."""
    model = network_model(policy.network)
    model.producer_name, model.producer_version = "aetdice", package_version("aetdice")
    checksum = graph_checksum(model.SerializeToString())
    entry = model.metadata_props.add()
    entry.key, entry.value = KEY, json.dumps(policy_facts(policy, result, {"sha256": checksum}))
    return bytes(model.SerializeToString())


FORMATS: dict[str, Callable[[Policy, Mapping[str, Any] | None], bytes]] = {
    ".onnx": policy_model,
    ".jax": policy_programs,
}
"""What a policy is exported as, by the suffix of the file."""
