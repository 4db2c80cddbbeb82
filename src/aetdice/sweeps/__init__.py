"""Sweeps: datasets, objectives, algorithms, values and seeds in every combination, on some engine."""

from aetdice.sweeps.sweeping import sweep
from aetdice.sweeps.table import read_table

__all__ = ["read_table", "sweep"]
