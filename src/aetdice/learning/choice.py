"""D18 of docs/paper.md: what the data says about how to learn from it, over how many steps, from which parts.

With deterministic transitions and one initial state, every way through the recorded augmented states
ends with a recorded return. So no choice between them can beat the best mixture of recorded episodes,
and weighing whole episodes (n = H) attains that without the errors of a learned ν. What can beat it is
to join parts of episodes where they are in the same state: `stitching` looks for such. Where transitions
are stochastic whole episodes would be chosen for their luck, and the dual of single steps is right; random
joins then show it what else could follow.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from aetdice.algorithms import Algorithm
from aetdice.algorithms.dice import aetdice
from aetdice.algorithms.episode_weighting import episode_weighting
from aetdice.config import TrainingConfig
from aetdice.data import Episodes
from aetdice.data.noise import chance_share
from aetdice.estimation.counted_model import CountedModel
from aetdice.estimation.models import Model, kind_of_model
from aetdice.estimation.neighbour_model import NeighbourModel
from aetdice.learning.inputs import actions_of
from aetdice.learning.recipe import settle
from aetdice.learning.stitching import Stitched, join_at_random, stitch
from aetdice.objectives import Objective

MOST_CHANCE = {"discrete": 1e-4, "continuous": 0.1}
"""Of what a step does; with more, transitions count as stochastic.

Discrete outcomes are pooled exactly, so any chance is worth it. Of continuous ones the dual sees a single
draw, which little chance does not make worse than the errors of ν do.
"""
ONE_START = 0.1
"""Initial states count as one if they are spread by less than this, relative to all states."""
LEAST_WHOLE = 0.5
"""Share of the episodes that must be recorded to their end for whole ones to be weighed."""
MOST_STEPS = 1_000_000
"""In which chance and joins are looked for."""
SEED = 0


STEADY = {"network.value_fourier": 3, "dual.batch": 512}
"""Settings, where they are at their defaults, with which ν stands a small β on stochastic data."""
BETAS = (1e-3, 1e-4)
"""Tried on stochastic data; the policy's J in the recorded model decides between them."""
SIZES = (0.005, 0.03, 0.15)
"""Effective sample sizes tried where states are continuous: few episodes do not show all that may happen."""
JOINS = (0.0, 1.0)
"""Where states are continuous joins are not exact: policies without them are tried, too."""
SURE_SIZE = 0.1
"""Taken where nothing can tell sizes apart."""
TRIED: dict[type[Model] | None, Mapping[str, Any]] = {
    CountedModel: {},
    NeighbourModel: {"sample_size": SIZES, "joins": JOINS},
    None: {"sample_size": SURE_SIZE},
}
"""By the model in which policies can be played."""
GRIDS: Mapping[str, Mapping[str, Any]] = {
    "esr-iql": {"expectile": (0.6, 0.75, 0.9), "temperature": (3.0, 14.0)},
    "fairdice": {"beta": (0.1, 1.0, 10.0)},
    "optidice": {"beta": (0.1, 1.0, 10.0)},
}
"""What other algorithms try of their own hyper-parameters where policies can be played."""


class Choice(NamedTuple):
    """How to learn from a dataset."""

    algorithm: Algorithm
    config: TrainingConfig
    sweeps: Mapping[str, Any]
    """Hyper-parameters of the algorithm's own."""
    joins: Literal["best", "random", "none"] = "none"
    """Which episodes to join from recorded parts."""


def choose(dataset: Episodes, given: Choice, horizon: int) -> Choice:
    """Whole episodes where nothing is left to chance, otherwise the dual of single steps; and its recipe."""
    discrete = np.issubdtype(dataset.observations.dtype, np.integer) and actions_of(dataset) > 0
    chance, most = chance_share(some_of(dataset)), MOST_CHANCE["discrete" if discrete else "continuous"]
    given = given._replace(config=settle(dataset, given.algorithm, horizon, given.config))
    whole = np.mean(dataset.terminated | (dataset.lengths >= horizon)) >= LEAST_WHOLE
    if whole and has_one_start(dataset) and chance <= most:
        kind = kind_of_model(dataset)
        given = given if kind is None else given._replace(config=_all_of_it(given.config))
        return given._replace(
            algorithm=episode_weighting(horizon, given.config, joins="joins" in TRIED[kind]),
            joins="none" if kind is None else "best",
            sweeps={**given.sweeps, **TRIED[kind]},
        )
    if not discrete or chance <= most:
        return given._replace(algorithm=aetdice(horizon, given.config))
    steady = {name: value for name, value in STEADY.items() if name not in given.config.changed()}
    config = _all_of_it(given.config).adapted(steady)
    return Choice(aetdice(horizon, config), config, {**given.sweeps, "beta": BETAS}, "random")


def choose_own(dataset: Episodes, given: Choice, name: str, horizon: int) -> Choice:
    """The recipe of another algorithm, and the values of its own that are tried."""
    config = settle(dataset, given.algorithm, horizon, given.config)
    grid = {} if kind_of_model(dataset) is None else GRIDS.get(name, {})
    return given._replace(config=_all_of_it(config) if grid else config, sweeps={**given.sweeps, **grid})


def _all_of_it(config: TrainingConfig) -> TrainingConfig:
    """Nothing held out unless it was asked for: playing the policies tells settings apart."""
    return config if config.trainer.holdout is not None else config.adapted({"trainer.holdout": 0.0})


def worth_trying(choices: Sequence[Mapping[str, Any]], joined: bool) -> list[Any]:
    """Of members with and without joined episodes: without, the smallest sample size is enough.

    Where nothing was joined there is no difference, and those with joins are kept.
    """
    least = min((choice.get("sample_size", 0.0) for choice in choices), default=0.0)
    return [
        choice
        for choice in choices
        if choice.get("joins", 1.0) != 0.0 or (joined and choice["sample_size"] == least)
    ]


def with_joined(
    dataset: Episodes, choice: Choice, objectives: Sequence[Objective], horizon: int
) -> tuple[Episodes, tuple[float, ...]]:
    """The dataset and the episodes joined from its parts, if there are any worth it; what they could bring.

    That is a J for each objective, or nothing where chance would have its share in it.
    """
    if choice.joins == "none":
        return dataset, ()
    parts = some_of(dataset)
    found = (
        stitch(parts, objectives, horizon, SEED)
        if choice.joins == "best"
        else Stitched(join_at_random(parts, horizon, SEED), ())
    )
    joined = dataset if found.episodes is None else Episodes.joined([dataset, found.episodes])
    return joined, found.possible


def some_of(dataset: Episodes, most: int | None = None) -> Episodes:
    """The dataset, or so many of its episodes that looking for chance and for joins takes seconds."""
    most = MOST_STEPS if most is None else most
    if dataset.steps <= most:
        return dataset
    count = max(1, most * len(dataset) // dataset.steps)
    return dataset.select(np.sort(np.random.default_rng(SEED).permutation(len(dataset))[:count]))


def has_one_start(dataset: Episodes) -> bool:
    """Whether all episodes begin in the same state, but for small noise."""
    frames = dataset.observations.reshape(len(dataset.observations), -1)
    first = frames[dataset.starts + np.arange(len(dataset))]
    spread = frames.std(axis=0)
    return bool(np.all(first.std(axis=0) <= ONE_START * np.where(spread > 0, spread, 1.0)))
