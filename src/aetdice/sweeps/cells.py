"""A cell of a sweep: a dataset, an algorithm, and objectives of one form; jobs are made from it."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from aetdice.config import TrainingConfig
from aetdice.errors import InputError
from aetdice.learning.inputs import check_settings, set_aside
from aetdice.learning.population import product
from aetdice.learning.recipe import widened
from aetdice.learning.setup import algorithm_for, hyper_of, readable
from aetdice.learning.table import LEARNING_RATE, TOGETHER
from aetdice.objectives import Objective, objective_record
from aetdice.sweeps.description import GIB, AlgorithmEntry, Description
from aetdice.sweeps.jobs import Job
from aetdice.sweeps.loading import Loaded
from aetdice.sweeps.memory import memory_of
from aetdice.sweeps.packing import Axes, members_in, pack
from aetdice.sweeps.values import is_value

HELD_OUT = 0.1
"""Share of the episodes by which settings are compared that are not trained together."""


@dataclass(frozen=True, eq=False)
class Cell:
    """A dataset, an algorithm, and objectives of one form: with equal settings, one population."""

    data: Loaded
    entry: AlgorithmEntry
    objectives: list[Objective]
    description: Description

    def jobs(self, values: Mapping[str, list[Any]], settings: int) -> Iterator[Job]:
        """Every combination of the values, which are among so many settings, in jobs that fit."""
        static = {name: several for name, several in values.items() if name not in TOGETHER}
        together = {name: tuple(several) for name, several in values.items() if name in TOGETHER}
        longest = dict(sorted(together.items(), key=lambda item: -len(item[1])))
        axes: Axes = {
            "objective": tuple(range(len(self.objectives))),
            "seed": tuple(self.description.seeds),
            **longest,
        }
        for varied in product(**static):
            config = self._config(varied)
            for part, taken in self._packed(axes, config):
                apart = math.prod(len(part[name]) for name in together) < settings
                used = self._holding_out(config) if apart else config
                yield self._job(part, list(together), varied, used, taken)

    def _config(self, varied: Mapping[str, Any]) -> TrainingConfig:
        return readable(self.description.config.adapted(varied), self.entry.algorithm)

    def _holding_out(self, config: TrainingConfig) -> TrainingConfig:
        """As a training does that has several settings to choose from."""
        if config.trainer.holdout is not None or not is_value("trainer.holdout", self.entry.algorithm):
            return config
        return config.adapted({"trainer.holdout": HELD_OUT})

    def _packed(self, axes: Axes, config: TrainingConfig) -> list[tuple[Axes, int]]:
        """Parts that fit, and the bytes that each takes."""
        data, packing = self.data, self.description.packing
        learner = algorithm_for(self.entry.algorithm, data.horizon, config)
        check_settings(data.episodes, config)
        self._check_criterion(config)
        rates = axes.get(LEARNING_RATE, (1e-3,))
        if wrong := [rate for rate in rates if not 0 < rate < math.inf]:
            raise InputError(f"learning_rate must be positive, not {wrong[0]:g}")
        own = {name: axes.get(name, (default,)) for name, default in learner.sweeps.items()}
        choices = product(objective=self.objectives, **own, learning_rate=rates)
        hypers = [hyper_of(choice, learner) for choice in choices]
        if not any(name in axes for name in learner.sweeps):  # or nothing is chosen from the data
            config = widened(data.episodes, config)
        memory = memory_of(data.episodes, data.horizon, learner, config, hypers[0])

        def taken(part: Axes) -> int:
            return memory.of(members_in(part), len(part["seed"]))

        def fits(part: Axes) -> bool:
            return members_in(part) <= packing.members and taken(part) <= packing.memory * GIB

        return [(part, taken(part)) for part in pack(axes, fits)]

    def _check_criterion(self, config: TrainingConfig) -> None:
        """`InputError` where a search would not see what it maximises."""
        _, kept = set_aside(self.data.episodes, config)
        sought = self.description.search
        if sought is None or sought.criterion == "offline":
            return
        if sought.criterion == "estimate" and kept is None:
            raise InputError(
                f'criterion "estimate" needs episodes of {self.data.name} that are kept for it: set '
                "trainer.report in [settings]"
            )
        if sought.criterion == "environment" and "env" not in (self.data.episodes.origin or {}):
            raise InputError(
                f'criterion "environment" needs an environment; {self.data.name} is a log: use "estimate"'
            )

    def _job(
        self, part: Axes, own: Sequence[str], varied: Mapping[str, Any], config: TrainingConfig, taken: int
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
            values={name: list(part[name]) for name in own},
            seeds=list(part["seed"]),
            settings=asdict(config),
            varied=dict(varied),
            episodes=self.description.episodes,
            members=members_in(part),
            memory=taken,
        )
