"""`export_policy`: one ONNX file with the network, and everything else in its metadata."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from aetdice.errors import InputError
from aetdice.evaluation import Policy, load_policy
from aetdice.files import package_version, write_whole
from aetdice.learning.folder import policy_file, read_request, read_result
from aetdice.networks import GaussianMixture
from aetdice.serving.graph import network_model
from aetdice_runner.artefact import FORMAT, KEY, facts_checksum, graph_checksum

RESULTS = ("params", "score", "twin_score", "scores", "verdict", "trusted")
"""What a run's result says about a member, as far as it was evaluated."""


def export_policy(policy: Policy, path: Path | str, result: Mapping[str, Any] | None = None) -> None:
    """Write the policy as one ONNX file, whole or not at all; `result` (JSON) is kept beside it.

    The graph maps observations, accrued rewards and times to the outputs of the head. Horizon, names,
    bounds, transform, versions and a checksum stand in the metadata. `aetdice_runner.Runner` reads it.
    """
    model = policy_model(policy, result)
    write_whole(Path(path), lambda partial: partial.write_bytes(model))


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
    """The artefact as it stands in the file."""
    model = network_model(policy.network)
    version = package_version("aetdice")
    model.producer_name, model.producer_version = "aetdice", version
    facts = {
        "format": FORMAT,
        "aetdice": version,
        "sha256": graph_checksum(model.SerializeToString()),
        "horizon": policy.horizon,
        "objective": policy.details.get("objective"),
        "objectives": policy.details.get("objectives"),
        "observation": _told(policy),
        "accrued": len(policy.network.encoder.accrued_range),
        "action": _said(policy),
        "coding": None if policy.coding is None else policy.coding.record(),
        "transform": None if policy.transform is None else policy.transform.record(),
        "details": policy.details,
        "result": None if result is None else dict(result),
    }
    facts = json.loads(json.dumps(facts))  # keys as they will be read
    facts["facts_sha256"] = facts_checksum(facts)
    entry = model.metadata_props.add()
    entry.key, entry.value = KEY, json.dumps(facts)
    return bytes(model.SerializeToString())


def _told(policy: Policy) -> dict[str, Any]:
    encoder = policy.network.encoder
    return {
        "size": len(encoder.centre),
        "sizes": None if encoder.sizes is None else list(encoder.sizes),
    }


def _said(policy: Policy) -> dict[str, Any]:
    head = policy.network.head
    if isinstance(head, GaussianMixture):
        low, high = (np.asarray(bound, np.float32).tolist() for bound in (head.low, head.high))
        return {"kind": "continuous", "low": low, "high": high}
    return {"kind": "discrete", "count": head.outputs}
