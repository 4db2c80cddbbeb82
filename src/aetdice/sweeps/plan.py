"""From a description to jobs: a product of datasets, algorithms, objectives, values and seeds, packed."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from aetdice.engines.task import LOCK
from aetdice.errors import InputError
from aetdice.files import write_json
from aetdice.learning.setup import algorithm_for, readable
from aetdice.locking import alone
from aetdice.sweeps.cells import Cell
from aetdice.sweeps.description import GIB, AlgorithmEntry, Description
from aetdice.sweeps.jobs import PLAN, Job
from aetdice.sweeps.loading import Loaded, forms_of, load_all
from aetdice.sweeps.memory import in_words
from aetdice.sweeps.values import Range

FORMAT = 1
INCIDENTAL = ("retries", "gpus")
"""What results do not depend on."""


class Plan(NamedTuple):
    """What is to be done; the jobs of a search are only known as it goes on."""

    description: Description
    cells: list[Cell]
    jobs: list[Job]
    remarks: list[str]
    digest: str


def plan_of(description: Description) -> Plan:
    """Every job of a grid, or every cell of a search; `InputError` names what is wrong."""
    loaded = load_all(description)
    cells, remarks = _cells(loaded, description)
    if description.search is None:
        made = (job for cell in cells for job in cell.jobs(*_grid(cell.entry)))
        jobs = [job.numbered(number) for number, job in enumerate(made)]
    else:
        jobs = []
        for cell in cells:  # what is out of range is refused now, and not by the trial that draws it
            for end in (0, -1):
                list(cell.jobs(_end(cell.entry, end), description.search.trials))
        count = description.search.trials * len(cells) * len(description.seeds)
        remarks.append(f"a search of {count} members, whose jobs are made as they are drawn")
    most = description.packing.memory * GIB
    remarks += [
        f"job {job.id} is a single member and takes about {in_words(job.memory)}, more than packing.memory"
        for job in jobs
        if job.memory > most
    ]
    remarks += [f"{data.name}: {note}" for data in loaded for note in data.episodes.notes]
    return Plan(description, cells, jobs, remarks, _digest(description, loaded, jobs))


def begin(plan: Plan, folder: Path) -> None:
    """Write the plan; `InputError` where the folder holds another one."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file, not a folder: choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    described = json.loads(json.dumps(asdict(plan.description), default=str))
    jobs, about = [job.record() for job in plan.jobs], {"format": FORMAT, "digest": plan.digest}
    with alone(folder / LOCK):  # two sweeps may begin at once
        if (folder / PLAN).is_file():
            _check_same(plan, described, folder)
        else:
            written = {**about, "remarks": plan.remarks, "description": described, "jobs": jobs}
            write_json(folder / PLAN, written)


def _check_same(plan: Plan, described: Mapping[str, Any], folder: Path) -> None:
    """`InputError` unless the folder's plan is this one; it says in what they differ."""
    path = folder / PLAN
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        digest, found = content["digest"], dict(content["description"])
    except (ValueError, LookupError, TypeError) as error:
        raise InputError(f"{path} is not the plan of a sweep: {error!r}") from error
    if digest != plan.digest:
        other = [name for name in described if found.get(name) != described[name] and name not in INCIDENTAL]
        words = ", ".join("settings" if name == "config" else name for name in other) or "its data"
        raise InputError(
            f"{folder} holds another sweep, different in {words}: choose another folder, or delete that one"
        )


def _cells(loaded: Sequence[Loaded], description: Description) -> tuple[list[Cell], list[str]]:
    """Those that are possible, and which are not."""
    cells: list[Cell] = []
    remarks: list[str] = []
    for data in loaded:
        for entry in description.algorithms:
            config = readable(description.config, entry.algorithm)
            learner = algorithm_for(entry.algorithm, data.horizon, config)
            possible = []
            for objective in data.objectives:
                try:
                    learner.check(objective, len(data.episodes.objectives))
                    possible.append(objective)
                except InputError as error:
                    remarks.append(f"left out on {data.name}: {error}")
            forms = forms_of(possible) if description.search is None else [[one] for one in possible]
            cells += [Cell(data, entry, form, description) for form in forms]
    if not cells:
        raise InputError(f"nothing can be trained: {'; '.join(remarks)}")
    return cells, remarks


def _grid(entry: AlgorithmEntry) -> tuple[dict[str, list[Any]], int]:
    """All values, and how many settings they make."""
    values = {name: several for name, several in entry.values.items() if not isinstance(several, Range)}
    return values, math.prod(map(len, values.values()))


def _end(entry: AlgorithmEntry, which: int) -> dict[str, list[Any]]:
    """The first (0) or last (-1) choice, and that end of every range."""
    return {
        name: [((several.low, several.high) if isinstance(several, Range) else several)[which]]
        for name, several in entry.values.items()
    }


def _digest(description: Description, loaded: Sequence[Loaded], jobs: Sequence[Job]) -> str:
    """Of all that results depend on; how often jobs are retried is not among it."""
    parts = {**asdict(description), **dict.fromkeys((*INCIDENTAL, "datasets"))}
    data = [[each.name, each.horizon, each.episodes.origin, each.episodes.sha256] for each in loaded]
    content = json.dumps([parts, data, [job.id for job in jobs]], sort_keys=True, default=str)
    return hashlib.sha256(content.encode()).hexdigest()
