"""Shipping: a policy as one file, for `aetdice_runner` (ONNX, without JAX) or for JAX alone."""

from aetdice.serving.export import FORMATS, export_policy, export_run, find_policy, policy_model

__all__ = ["FORMATS", "export_policy", "export_run", "find_policy", "policy_model"]
