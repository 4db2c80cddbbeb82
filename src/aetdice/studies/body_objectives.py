"""Objectives of the MuJoCo bodies: efficiency, with safety and with safety left out, and their units."""

import numpy as np

from aetdice.objectives import Chain, CobbDouglas, Linear, Objective, Select, Stack, in_float64
from aetdice.studies.study import Returns


def cobb_douglas(rho: float, epsilon: float = 1e-3) -> Objective:
    """E[R_0^ρ / R_1^(1-ρ)], whatever other channels there are."""
    utility = Chain((Select((0, 1)), CobbDouglas(rho, epsilon)))
    return Objective(utility, Linear(), "Cobb-Douglas", {"rho": np.float64(rho)})


def in_units_of_data(objective: Objective, returns: Returns) -> Objective:
    """A linear G divided by the data's own value: the same optimum, and one grid of β serves all.

    Any other G is left alone: where it is a logarithm, multipliers are relative already.
    """
    if not isinstance(objective.aggregation, Linear):
        return objective
    weights = objective.aggregation.weights / float(in_float64(objective)(returns))
    return Objective(objective.utility, Linear(weights), objective.label, objective.shown)


def without_safety(safe: Objective) -> Objective:
    """The same logarithm of the same efficiency, and nothing else: the two differ in safety alone."""
    assert isinstance(safe.utility, Stack)
    return Objective(safe.utility.parts[0], safe.aggregation, f"{safe.label}, safety left out", safe.shown)
