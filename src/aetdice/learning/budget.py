"""A budget in minutes: the longest effort that fits into it on this machine, or a quick one made shorter."""

import math
import time
from collections.abc import Mapping, Sequence

from aetdice.algorithms import Algorithm
from aetdice.config import TrainingConfig
from aetdice.data import Episodes
from aetdice.errors import InputError
from aetdice.learning.choice import GRIDS
from aetdice.learning.inputs import set_aside
from aetdice.learning.recipe import (
    EFFORTS,
    UPDATES,
    VALUE_STAGES,
    Effort,
    Trial,
    effort_for,
    features_for,
    is_open,
    widened,
)
from aetdice.learning.setup import AETDICE, Values, several
from aetdice.objectives import Objective

TIMED = 200
"""Updates of cloning by which a machine is timed, after as many that compile it."""
MOST_TRIED = 4
"""Settings that are tried where n and β are chosen from the data."""
OF_VALUES = 2.0
"""Updates of a policy that take as long as one of ν, or of Q and V."""
SPENT = 0.8
"""Of the minutes; the rest is for data, refit, playing and compilation."""
LEAST_UPDATES = 200


def within(
    minutes: float,
    dataset: Episodes,
    algorithm: Algorithm,
    horizon: int,
    config: TrainingConfig,
    policies: int,
) -> TrainingConfig:
    """The configuration with effort, and if need be lengths, that so many minutes allow on this machine."""
    if not (math.isfinite(minutes) and minutes > 0):
        raise InputError(f"a budget is a number of minutes above 0, not {minutes}")
    dataset, _ = set_aside(dataset, config)
    trial = Trial.of(dataset, algorithm, horizon)
    if trial is None:
        return config.adapted({"trainer.effort": "quick"})
    seconds, features = pace(trial, widened(dataset, config)), len(features_for(dataset))
    efforts = {name: effort_for(dataset, name) for name in EFFORTS}
    costs = {name: seconds * updates_of(effort, policies, features) for name, effort in efforts.items()}
    return fitted(SPENT * 60 * minutes, costs, efforts, algorithm, config)


def fitted(
    seconds: float,
    costs: Mapping[str, float],
    efforts: Mapping[str, Effort],
    algorithm: Algorithm,
    config: TrainingConfig,
) -> TrainingConfig:
    """The longest effort that costs at most so many seconds; if none does, the shortest, shortened."""
    for name in sorted(costs, key=lambda name: -costs[name]):
        if costs[name] <= seconds:
            return config.adapted({"trainer.effort": name})
    shortest = min(costs, key=lambda name: costs[name])
    share, effort = seconds / costs[shortest], efforts[shortest]
    lengths = dict.fromkeys(VALUE_STAGES, effort.values) | {"extraction.steps": effort.lengths[-1]}
    short = {
        name: max(LEAST_UPDATES, round(share * length))
        for name, length in lengths.items()
        if is_open(name, algorithm, config)
    }
    return config.adapted({"trainer.effort": shortest, **short})


def pace(trial: Trial, config: TrainingConfig) -> float:
    """Seconds that an update of a policy takes here."""
    trial.fit(config, TIMED)
    started = time.perf_counter()
    trial.fit(config, TIMED)
    return (time.perf_counter() - started) / TIMED


def updates_of(effort: Effort, policies: int, features: int) -> float:
    """Of single policies: what choosing takes, among so many features, and what training takes at most."""
    longest = effort.lengths[-1]
    chosen = sum(effort.lengths) if len(effort.lengths) > 1 else 0
    chosen += features * UPDATES
    chosen += sum((1 + len(tried)) * longest for tried in (effort.dropouts, effort.widths) if tried)
    return chosen + policies * (longest + OF_VALUES * effort.values)


def policies_of(
    algorithm: str,
    objectives: Sequence[Objective],
    sweeps: Mapping[str, Values | None],
    rates: Sequence[float],
    seeds: Sequence[int],
) -> int:
    """About how many are trained: every setting for every objective and seed, and a twin for every seed."""
    own = [len(several(value)) for value in sweeps.values() if value is not None]
    grid = [len(values) for values in GRIDS.get(algorithm, {}).values()]
    tried = MOST_TRIED if algorithm == AETDICE and not own else math.prod(own or grid)
    return len(seeds) * (1 + len(objectives) * len(rates) * tried)
