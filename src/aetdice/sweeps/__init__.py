"""Sweeps: datasets, objectives, algorithms, values and seeds in every combination, on some engine."""

from aetdice.learning.table import read_table
from aetdice.sweeps.sweeping import sweep

__all__ = ["read_table", "sweep"]
