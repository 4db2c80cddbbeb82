"""Sweeps: datasets, objectives, algorithms, values and seeds in every combination, on one engine or another."""

from aetdice.sweeps.sweeping import sweep
from aetdice.sweeps.table import read_table

__all__ = ["read_table", "sweep"]
