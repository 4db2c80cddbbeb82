"""What the numbers of a dataset stand for: names of columns, categories, and what each action is called.

The code is the runner's, which codes and decodes without JAX.
"""

from aetdice_runner.coding import Coding, ObservationColumn, Value, coding_from, listed

__all__ = ["Coding", "ObservationColumn", "Value", "coding_from", "listed"]
