"""Objectives from the words of a command line or a configuration file."""

import inspect
import math
from collections.abc import Mapping

from aetdice.errors import InputError
from aetdice.objectives.aggregations import AGGREGATIONS, Aggregation
from aetdice.objectives.expressions import parse_aggregation, parse_utility
from aetdice.objectives.named import OBJECTIVES
from aetdice.objectives.objective import Objective


def named_objective(name: str, options: Mapping[str, object]) -> Objective:
    """`named_objective("bsr", {"alpha": 0.5})`; an option the objective does not take is an error."""
    if name not in OBJECTIVES:
        raise InputError(f"unknown objective {name!r}; known objectives: {', '.join(OBJECTIVES)}")
    parameters = inspect.signature(OBJECTIVES[name]).parameters
    for option in options:
        if option not in parameters:
            raise InputError(f"objective {name!r} takes no {option}; it takes: {', '.join(parameters)}")
    for required, details in parameters.items():
        if details.default is inspect.Parameter.empty and required not in options:
            raise InputError(f"objective {name!r} needs {required}, for example --{required} 0.5")
    return OBJECTIVES[name](**options)


def named_aggregation(name: str) -> Aggregation:
    """A registered aggregation with its defaults."""
    if name not in AGGREGATIONS:
        raise InputError(f"unknown aggregation {name!r}; known aggregations: {', '.join(AGGREGATIONS)}")
    return AGGREGATIONS[name]()


def written_objective(
    utility: str, aggregation: str, objectives: int, horizon: int, threshold: float = 1.0
) -> Objective:
    """An objective from two expressions, or an expression and the name of an aggregation.

    The utility is written in r0 … r{m-1} and `horizon`, its components separated by commas;
    the aggregation is `linear`, `log`, … or an expression in k0 … k{n-1} and `horizon`.
    """
    if not 0 < threshold < math.inf:
        raise InputError(f"threshold must be positive, not {threshold:g}")
    constants = {"horizon": float(horizon)}
    f = parse_utility(utility, objectives, constants, threshold)
    if aggregation in AGGREGATIONS:
        return Objective(f, AGGREGATIONS[aggregation]())
    if aggregation.isidentifier() and not aggregation.startswith("k"):
        return Objective(f, named_aggregation(aggregation))
    return Objective(f, parse_aggregation(aggregation, f.components, constants, threshold))
