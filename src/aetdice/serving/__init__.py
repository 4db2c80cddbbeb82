"""Shipping: a policy as one ONNX file, which `aetdice_runner` runs and serves without JAX."""

from aetdice.serving.export import export_policy, export_run, find_policy, policy_model

__all__ = ["export_policy", "export_run", "find_policy", "policy_model"]
