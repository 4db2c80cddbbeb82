"""Algorithms: how one update looks. Training repeats it, for a population at once."""
