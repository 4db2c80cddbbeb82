"""Policies of aetdice without JAX: NumPy and onnxruntime are all that is imported."""

from aetdice_runner.errors import InputError, TurnError
from aetdice_runner.runner import Runner
from aetdice_runner.sessions import Sessions

__all__ = ["InputError", "Runner", "Sessions", "TurnError"]
