"""From a description to jobs: a product of datasets, algorithms, objectives, values and seeds, packed."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from aetdice.config import TrainingConfig
from aetdice.errors import InputError
from aetdice.files import write_json
from aetdice.learning.inputs import check_settings, set_aside
from aetdice.learning.population import product
from aetdice.learning.setup import algorithm_for, hyper_of, readable
from aetdice.objectives import Objective, objective_record
from aetdice.sweeps.description import GIB, AlgorithmEntry, Description
from aetdice.sweeps.jobs import Job
from aetdice.sweeps.loading import Loaded, forms_of, load_all
from aetdice.sweeps.memory import in_words, memory_of
from aetdice.sweeps.packing import Axes, members_in, pack
from aetdice.sweeps.values import LEARNING_RATE, TOGETHER, Range, is_value

PLAN = "plan.json"
FORMAT = 1
HELD_OUT = 0.1
"""Share of the episodes by which settings are compared that are not trained together."""


@dataclass(frozen=True, eq=False)
class Cell:
    """A dataset, an algorithm, and objectives of one form: with equal settings, one population."""

    data: Loaded
    entry: AlgorithmEntry
    objectives: list[Objective]
    description: Description

    @property
    def name(self) -> str:
        objectives = ", ".join(objective.short_name for objective in self.objectives)
        return f"{self.entry.algorithm} for {objectives} on {self.data.name}"

    def jobs(self, values: Mapping[str, list[Any]], settings: int) -> Iterator[Job]:
        """Every combination of the values, which are among so many settings, in jobs that fit."""
        apart = {name: several for name, several in values.items() if name not in TOGETHER}
        together = {name: tuple(several) for name, several in values.items() if name in TOGETHER}
        longest = dict(sorted(together.items(), key=lambda item: -len(item[1])))
        axes: Axes = {
            "objective": tuple(range(len(self.objectives))),
            "seed": tuple(self.description.seeds),
            **longest,
        }
        for varied in product(**apart):
            config = self._config(varied)
            for part in self._packed(axes, config):
                own = {name: list(part[name]) for name in together}
                compared = math.prod(map(len, own.values())) < settings
                yield self._job(part, own, varied, self._holding_out(config) if compared else config)

    def _config(self, varied: Mapping[str, Any]) -> TrainingConfig:
        return readable(self.description.config.adapted(varied), self.entry.algorithm)

    def _holding_out(self, config: TrainingConfig) -> TrainingConfig:
        """As a training does that has several settings to choose from."""
        if config.trainer.holdout is not None or not is_value("trainer.holdout", self.entry.algorithm):
            return config
        return config.adapted({"trainer.holdout": HELD_OUT})

    def _packed(self, axes: Axes, config: TrainingConfig) -> list[Axes]:
        data, packing = self.data, self.description.packing
        learner = algorithm_for(self.entry.algorithm, data.horizon, config)
        check_settings(data.episodes, config)
        set_aside(data.episodes, config)
        rates = axes.get(LEARNING_RATE, (1e-3,))
        if min(rates) <= 0:
            raise InputError(f"learning_rate must be positive, not {min(rates):g}")
        own = {name: axes.get(name, (default,)) for name, default in learner.sweeps.items()}
        choices = product(objective=self.objectives, **own, learning_rate=rates)
        hypers = [hyper_of(choice, learner) for choice in choices]
        memory = memory_of(data.episodes, data.horizon, learner, config, hypers[0])

        def fits(part: Axes) -> bool:
            taken = memory.of(members_in(part), len(part["seed"]))
            return members_in(part) <= packing.members and taken <= packing.memory * GIB

        return [
            {**part, "bytes": (memory.of(members_in(part), len(part["seed"])),)} for part in pack(axes, fits)
        ]

    def _job(
        self, part: Axes, own: dict[str, list[Any]], varied: Mapping[str, Any], config: TrainingConfig
    ) -> Job:
        chosen = [self.objectives[index] for index in part["objective"]]
        origin = self.data.episodes.origin
        assert origin is not None  # of what was loaded by name
        return Job(
            id="",
            dataset=self.data.name,
            origin=origin,
            sha256=self.data.episodes.sha256,
            horizon=self.data.horizon,
            algorithm=self.entry.algorithm,
            objectives=[{"name": each.name, "record": objective_record(each)} for each in chosen],
            values=own,
            seeds=list(part["seed"]),
            settings=asdict(config),
            varied=dict(varied),
            episodes=self.description.episodes,
            members=members_in(part),
            memory=part["bytes"][0],
        )


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
        jobs = numbered([job for cell in cells for job in cell.jobs(*_grid(cell.entry))])
    else:
        jobs = []
        for cell in cells:  # what is out of range is refused now, and not by the trial that draws it
            list(cell.jobs(_ends(cell.entry), description.search.trials))
    most = description.packing.memory * GIB
    remarks += [
        f"job {job.id} is a single member and takes about {in_words(job.memory)}, more than packing.memory"
        for job in jobs
        if job.memory > most
    ]
    remarks += [note for data in loaded for note in data.episodes.notes]
    return Plan(description, cells, jobs, remarks, _digest(description, loaded, jobs))


def numbered(jobs: Sequence[Job], first: int = 0) -> list[Job]:
    """With their ids."""
    return [job.numbered(first + index) for index, job in enumerate(jobs)]


def begin(plan: Plan, folder: Path) -> None:
    """Write the plan; `InputError` where the folder holds another one."""
    path = folder / PLAN
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file, not a folder")
    if path.is_file():
        try:
            found = json.loads(path.read_text(encoding="utf-8"))["digest"]
        except (ValueError, LookupError, TypeError) as error:
            raise InputError(f"{path} is not the plan of a sweep: {error!r}") from error
        if found != plan.digest:
            raise InputError(f"{folder} holds another sweep: choose another folder, or delete that one")
        return
    jobs = [job.record() for job in plan.jobs]
    described = json.loads(json.dumps(asdict(plan.description), default=str))
    write_json(path, {"format": FORMAT, "digest": plan.digest, "description": described, "jobs": jobs})


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


def _ends(entry: AlgorithmEntry) -> dict[str, list[Any]]:
    """All choices, and both ends of every range."""
    return {
        name: [several.low, several.high] if isinstance(several, Range) else several
        for name, several in entry.values.items()
    }


def _digest(description: Description, loaded: Sequence[Loaded], jobs: Sequence[Job]) -> str:
    """Of all that results depend on; how often jobs are retried is not among it."""
    parts = {**asdict(description), "retries": None, "gpus": None, "datasets": None}
    data = [[each.name, each.episodes.sha256] for each in loaded]
    content = json.dumps([parts, data, [job.id for job in jobs]], sort_keys=True, default=str)
    return hashlib.sha256(content.encode()).hexdigest()
