"""What an exported policy needs to act beside its arithmetic, as JSON."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from aetdice.evaluation import Policy
from aetdice.files import package_version
from aetdice.networks import GaussianMixture
from aetdice_runner.artefact import FORMAT, facts_checksum


def policy_facts(
    policy: Policy, result: Mapping[str, Any] | None, arithmetic: Mapping[str, Any]
) -> dict[str, Any]:
    """Horizon, names, coding, transform, result, and a checksum of all; `arithmetic` has that of the rest."""
    facts = {
        "format": FORMAT,
        "aetdice": package_version("aetdice"),
        **arithmetic,
        "horizon": policy.horizon,
        "objective": policy.details.get("objective"),
        "objectives": policy.details.get("objectives"),
        "observation": _told(policy),
        "accrued": len(policy.network.encoder.accrued_range),
        "action": _said(policy),
        "courses": np.asarray(policy.network.courses, np.float32).tolist(),
        "coding": None if policy.coding is None else policy.coding.record(),
        "transform": None if policy.transform is None else policy.transform.record(),
        "details": policy.details,
        "result": None if result is None else dict(result),
    }
    facts = json.loads(json.dumps(facts))  # keys as they will be read
    return {**facts, "facts_sha256": facts_checksum(facts)}


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
