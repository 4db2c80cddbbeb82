"""A study as data: tables of rows under columns, trained in populations, beside references."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from aetdice.config import TrainingConfig
from aetdice.data import Episodes, Transform, transform_episodes
from aetdice.envs import Environment
from aetdice.evaluation import Policy, sample_returns_of
from aetdice.evaluation.scores import score_returns
from aetdice.learning.table import Rows
from aetdice.objectives import Objective
from aetdice.report.sheets import Sheet
from aetdice.studies.parts import Part, Results

SEED = 2026
"""Of every rollout."""
DATA_SEED = 0
"""Of every dataset."""
SHOWN = 500
"""Returns of each policy that are kept for figures."""

Returns = Float[np.ndarray, "episodes m"]
Grid = Mapping[str, tuple[float, ...]]
"""Values of an algorithm's hyper-parameters; every combination is a setting."""
Quantities = Mapping[str, Mapping[str, float]]
"""Numbers in named groups, such as shares of behaviours: each has a mean and a spread over seeds."""
Paper = Mapping[str, Mapping[str, tuple[float, float | None]]]
"""By row and column the paper's mean and standard deviation over seeds, where it prints one."""
Summary = dict[str, Any]
"""One table of `summary.json`, as `merging` makes it."""


@dataclass(frozen=True)
class Effort:
    """How much of a study to do."""

    seeds: tuple[int, ...]
    episodes: int
    """Rolled out per policy."""
    dataset: int
    """Episodes collected."""
    grids: Mapping[str, Grid]
    """By population."""
    config: TrainingConfig
    """Of every method, so that all have the same budget; what one does not read is left out."""


class Dataset(NamedTuple):
    """Recorded episodes, and how their rewards are transformed."""

    recorded: Episodes
    transform: Transform | None = None

    @property
    def seen(self) -> Episodes:
        """The episodes as a learner sees them."""
        recorded, transform = self
        return recorded if transform is None else transform_episodes(recorded, transform)


class Rollouts(NamedTuple):
    """Sampled episodes of one policy."""

    returns: Returns
    quantities: Quantities
    samples: Mapping[str, list[Any]]
    """What figures show of single episodes; it is not kept in `summary.json`."""


class Row(NamedTuple):
    """A line of a table: what is trained for which objective."""

    name: str
    objective: Objective
    column: str | None = None
    """The column in which it should be among the best."""
    optimum: str | None = None
    """The reference that has the best value of its objective."""


@dataclass(frozen=True)
class Population:
    """Rows that one algorithm trains together: their objectives share a form."""

    name: str
    algorithm: str
    rows: tuple[Row, ...]
    grid: Grid
    config: TrainingConfig
    cloning_row: str | None = None
    """The row that its twins are, where no other population has the same ones."""
    evaluates: Literal["all", "selected"] = "all"
    """Which settings are rolled out."""
    shows: Literal["selected", "best"] = "selected"
    """Which setting a table shows: the one selected without the environment, or the best in it."""


@dataclass(frozen=True)
class Table:
    """One environment and dataset: what is trained on it, scored under which columns, beside what."""

    name: str
    title: str
    horizon: int
    effort: Effort
    columns: Mapping[str, Objective]
    """What is scored, by heading."""
    populations: tuple[Population, ...]
    facts: Mapping[str, Any]
    """What the environment, the dataset and the references depend on, as JSON has it."""
    dataset: Callable[[Path], Dataset]
    """Given the folder of the parts, where it may keep what was collected."""
    play: Callable[[Sequence[Policy], int], list[Rollouts]]
    """So many episodes of each policy."""
    references: Callable[[Dataset], dict[str, Any]]
    """By name: `scores` under the columns, the `value` of its own objective, `quantities`, `samples`."""
    paper: Paper = field(default_factory=dict)
    prefix: str = ""
    """Of the names of its parts."""
    separate: bool = False
    """Whether rollouts are parts of their own, which another machine may do."""
    interval: bool = False
    """Whether ± is a 95 % interval of the mean, not the standard deviation over seeds."""
    trained: Callable[[Objective, Returns], Objective] = lambda objective, _: objective
    """What is trained in place of a row's objective, given the data's returns: the same in other units."""
    certified: bool = False
    """Whether the optima that its rows refer to are exact, not only the best that is known."""
    sheets: Callable[[Summary], list[Sheet]] = lambda _: []
    """Sheets that only this one has."""
    figures: Callable[[Summary, Path], None] = lambda *_: None


class Probe(NamedTuple):
    """A part that fits into no table, and what shows its results."""

    part: Part
    show: Callable[[Mapping[str, Any]], Sheet]


class Overview(NamedTuple):
    """What several parts show together."""

    sheets: list[Sheet]
    notes: list[str]
    """Sentences below them."""
    answer: str = ""
    """What they come to, in a sentence."""


@dataclass(frozen=True)
class Study:
    """Tables that are reported together, and probes or other parts beside them."""

    name: str
    tables: tuple[Table, ...]
    probes: tuple[Probe, ...] = ()
    figures: Callable[[Mapping[str, Summary], Path], None] = lambda *_: None
    """Figures that several tables make together."""
    parts: tuple[Part, ...] = ()
    """Parts that are shown together, by the overview."""
    overview: Callable[[Results], Overview] = lambda _: Overview([], [])
    members: Callable[[Results], Rows] = lambda _: []
    """Rows of what other parts than those of tables have trained; `job` is the part."""
    asks: str = ""
    """What it is to find out."""


def with_value_stage(config: TrainingConfig, steps: int, batch: int) -> TrainingConfig:
    """The same number and size of updates for ν and for the values of ESR-IQL: one budget for all."""
    own = {"steps": steps, "batch": batch}
    return config.adapted({f"{stage}.{name}": own[name] for stage in ("dual", "iql") for name in own})


FROM_DATA, WEIGHED = ", n from the data", ", episodes weighed"


def chosen_and_weighed(
    rows: Callable[[str], tuple[Row, ...]], config: TrainingConfig, cloning_row: str | None = None
) -> tuple[Population, Population]:
    """AETDICE whose n is chosen from the data, and whole recorded episodes weighed; rows by their ending."""
    return (
        Population("n-from-data", "aetdice", rows(FROM_DATA), {}, config, cloning_row),
        Population("episodes", "episode-weighting", rows(WEIGHED), {}, config),
    )


def play_in(
    env: Environment, quantities: Callable[[Policy, Returns], Quantities] = lambda *_: {}
) -> Callable[[Sequence[Policy], int], list[Rollouts]]:
    """Rollouts of all policies in one program."""

    def play(policies: Sequence[Policy], episodes: int) -> list[Rollouts]:
        every = zip(policies, sample_returns_of(policies, env, episodes, SEED), strict=True)
        return [Rollouts(r, quantities(policy, r), {"returns": rounded(r[:SHOWN])}) for policy, r in every]

    return play


def facts_of(env: Environment) -> dict[str, Any]:
    """Everything that makes an environment what it is, from its layout to its slip."""
    assert is_dataclass(env)
    return {each.name: getattr(env, each.name) for each in fields(env)}


def scores_of(returns: Returns, objectives: Mapping[str, Objective]) -> dict[str, dict[str, float]]:
    """J of episodes under each objective, with its interval over episodes."""
    scored = score_returns(returns, objectives).scores
    return {name: {"value": s.value, "low": s.low, "high": s.high} for name, s in scored.items()}


def reference_of(returns: Returns, columns: Mapping[str, Objective], **more: Any) -> dict[str, Any]:
    """Episodes, such as those of the data, as a reference."""
    scores = {name: score["value"] for name, score in scores_of(returns, columns).items()}
    return {"scores": scores, "mean_returns": returns.mean(axis=0).tolist(), **more}


def rounded(values: Any) -> list[list[float]]:
    """Four digits, which is more than a figure shows."""
    return [[float(f"{entry:.4g}") for entry in row] for row in values]
