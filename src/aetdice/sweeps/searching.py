"""Optuna in place of a grid: values drawn a few at a time, and told in order, so that every engine agrees.

Needs the extra `aetdice[search]`.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from aetdice.errors import InputError
from aetdice.sweeps.cells import Cell
from aetdice.sweeps.description import Search
from aetdice.sweeps.jobs import Job
from aetdice.sweeps.plan import Plan
from aetdice.sweeps.values import Range

SAMPLER_SEED = 0
OFFLINE = ("model_value", "held_out_claimed_value")
"""Diagnostics that tell settings apart without the environment, the better first."""
LOST = -math.inf
"""Of a trial of which nothing is known."""

Found = Callable[[Job], Mapping[str, Any] | None]
"""What a job's file says, once it is done."""


def search(plan: Plan, sought: Search, run: Callable[[Sequence[Job]], None], found: Found) -> None:
    """All trials of all cells; the jobs of a batch of each are run together, some perhaps named again."""
    optuna = _optuna()
    studies = [
        optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=SAMPLER_SEED))
        for _ in plan.cells
    ]
    spaces = [_space(optuna, cell) for cell in plan.cells]
    made: dict[str, Job] = {}

    def once(job: Job) -> Job:
        """Values may be drawn again: they are trained once."""
        return made.setdefault(json.dumps(job.record(), sort_keys=True), job.numbered(len(made)))

    for first in range(0, sought.trials, sought.batch):
        asked: list[tuple[Any, Any, list[Job]]] = []
        for cell, study, space in zip(plan.cells, studies, spaces, strict=True):
            for _ in range(min(sought.batch, sought.trials - first)):
                trial = study.ask(space)
                drawn = cell.jobs(_drawn(cell, trial.params), sought.trials)
                asked.append((study, trial, list(map(once, drawn))))
        run([job for _, _, jobs in asked for job in jobs])
        for study, trial, jobs in asked:
            study.tell(trial, _worth(jobs, found, sought.criterion))


def members_of_search(plan: Plan, sought: Search) -> int:
    """Members of all trials together."""
    return sought.trials * len(plan.cells) * len(plan.description.seeds)


def _space(optuna: Any, cell: Cell) -> dict[str, Any]:
    """Choices by their place, since Optuna takes no lists."""
    kinds = optuna.distributions
    space: dict[str, Any] = {}
    for name, values in cell.entry.values.items():
        if not isinstance(values, Range):
            space[name] = kinds.CategoricalDistribution(range(len(values)))
        elif isinstance(values.low, int) and isinstance(values.high, int):
            space[name] = kinds.IntDistribution(values.low, values.high, log=values.log)
        else:
            space[name] = kinds.FloatDistribution(values.low, values.high, log=values.log)
    return space


def _drawn(cell: Cell, params: Mapping[str, Any]) -> dict[str, list[Any]]:
    values = cell.entry.values
    return {
        name: [params[name] if isinstance(several, Range) else several[params[name]]]
        for name, several in values.items()
    }


def _worth(jobs: Sequence[Job], found: Found, criterion: str) -> float:
    """What is maximised, averaged over seeds; of settings whose values are left to the data, the best."""
    files = [found(job) for job in jobs]
    if any(file is None for file in files):
        return LOST
    settings: dict[str, list[float]] = {}
    for row in (row for file in files if file is not None for row in file["rows"]):
        own = {name: value for name, value in row.items() if name in ("beta", "sample_size")}
        settings.setdefault(json.dumps(own), []).append(_worth_of(row, criterion))
    return max(float(np.mean(values)) for values in settings.values())


def _worth_of(row: Mapping[str, Any], criterion: str) -> float:
    if criterion != "offline":
        return float(row[{"environment": "score", "estimate": "estimate_low"}[criterion]])
    known = [float(row["diagnostics"][name]) for name in OFFLINE if name in row["diagnostics"]]
    if not known:
        raise InputError(
            f"nothing but the environment or an estimate can tell settings of {row['algorithm']} apart: give "
            'criterion = "estimate" or "environment"'
        )
    return known[0]


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise InputError(f"Optuna is not installed ({error}); pip install 'aetdice[search]'") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
