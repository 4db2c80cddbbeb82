"""The one exception of the library for input it cannot accept."""

from aetdice_runner.errors import InputError

__all__ = ["InputError"]
