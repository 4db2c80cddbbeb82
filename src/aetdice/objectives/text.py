"""Objectives from the words of a command line or a configuration file."""

import inspect
import math
from collections.abc import Mapping, Sequence

from aetdice.errors import InputError
from aetdice.objectives.aggregations import AGGREGATIONS, Aggregation, AlphaFair
from aetdice.objectives.expressions import parse_aggregation, parse_utility
from aetdice.objectives.fairness import Fair
from aetdice.objectives.named import OBJECTIVES
from aetdice.objectives.objective import Objective


def described_objective(options: Mapping[str, object], objectives: int, horizon: int) -> Objective:
    """An objective from what a command line or a file says: `objective` and its options, or `utility`.

    `{"objective": "bsr", "alpha": 0.5}`, `{"utility": "log(r0), r1", "aggregation": "log"}`.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if "utility" in given:
        known = {"utility", "aggregation", "threshold", "aggregation_threshold"}
        if extra := sorted(set(given) - known):
            raise InputError(f"--utility replaces a named objective, so it takes no --{_flag(extra[0])}")
        return written_objective(
            **{"aggregation": "linear", **given},  # type: ignore[arg-type]
            objectives=objectives,
            horizon=horizon,
        )
    name = given.pop("objective", None)
    if name is None:
        raise InputError(f'say which objective: --objective {" | ".join(OBJECTIVES)}, or --utility "…"')
    if "aggregation" in given:
        given["aggregation"] = named_aggregation(str(given["aggregation"]))
    if name == "safe-cobb-douglas":
        given["horizon"] = float(horizon)
    weights = given.get("weights")
    if isinstance(weights, Sequence) and len(weights) != objectives:
        raise InputError(f"--weights needs {objectives} numbers, one per objective, not {len(weights)}")
    return named_objective(str(name), given)


def _flag(name: str) -> str:
    return name.replace("_", "-")


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


def named_aggregation(name: str, threshold: float = 1.0) -> Aggregation:
    """A registered aggregation with its defaults, continued below the threshold where it has one."""
    if name not in AGGREGATIONS:
        raise InputError(f"unknown aggregation {name!r}; known aggregations: {', '.join(AGGREGATIONS)}")
    aggregation = AGGREGATIONS[name]()
    if isinstance(aggregation, AlphaFair):
        return AlphaFair(Fair(aggregation.fair.a, threshold))
    return aggregation


def written_objective(
    utility: str,
    aggregation: str,
    objectives: int,
    horizon: int,
    threshold: float = 1.0,
    aggregation_threshold: float = 1.0,
) -> Objective:
    """An objective from two expressions, or an expression and the name of an aggregation.

    The utility is written in r0 … r{m-1} and `horizon`, its components separated by commas;
    the aggregation is `linear`, `log`, … or an expression in k0 … k{n-1} and `horizon`.
    """
    for name, value in (("threshold", threshold), ("aggregation_threshold", aggregation_threshold)):
        if not 0 < value < math.inf:
            raise InputError(f"{name} must be positive, not {value:g}")
    constants = {"horizon": float(horizon)}
    f = parse_utility(utility, objectives, constants, threshold)
    if aggregation in AGGREGATIONS or (aggregation.isidentifier() and not aggregation.startswith("k")):
        return Objective(f, named_aggregation(aggregation, aggregation_threshold))
    return Objective(f, parse_aggregation(aggregation, f.components, constants, aggregation_threshold))
