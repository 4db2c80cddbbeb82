"""Environments and their own datasets by name."""

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from aetdice.behaviours import collect_body
from aetdice.behaviours.collection import QUALITIES as BODY_QUALITIES
from aetdice.behaviours.collection import TRAJECTORIES
from aetdice.data import Episodes
from aetdice.envs import ENVIRONMENTS, IDS, FiniteEnvironment
from aetdice.envs.batched import BatchedEnvironment
from aetdice.envs.environment import Environment
from aetdice.envs.fair_taxi import collect_fair_taxi
from aetdice.envs.fair_taxi.collection import QUALITIES as TAXI_QUALITIES
from aetdice.envs.mujoco import BODIES, BatchedBody
from aetdice.envs.point_maze import collect_point_maze
from aetdice.envs.point_maze.collection import QUALITIES as MAZE_QUALITIES
from aetdice.errors import InputError
from aetdice.exact import AugmentedSpace, TabularMOMDP, enumerate_space


def collect_d4morl(
    body: BatchedBody, episodes: int = TRAJECTORIES, seed: int = 0, quality: str = "expert"
) -> Episodes:
    """Episodes of the behaviour policy that comes with the package."""
    found = collect_body(body.body.name, quality, episodes, seed, horizon=body.horizon)
    return Episodes.from_list(found, body.objectives)


MAKERS: dict[str, Callable[..., Environment | BatchedEnvironment]] = {
    **ENVIRONMENTS,
    **{f"d4morl-{name}": partial(BatchedBody, name) for name in BODIES},
}
"""Every environment by its short name."""
COLLECTORS: dict[str, Callable[..., Episodes]] = {
    "fair-taxi": collect_fair_taxi,
    "pointmaze-2obj": collect_point_maze,
    "pointmaze-3obj": collect_point_maze,
    **{f"d4morl-{name}": collect_d4morl for name in BODIES},
}
"""What collects an environment's own dataset; to be listed here is to be trained on and tested."""
QUALITIES = tuple(dict.fromkeys((*BODY_QUALITIES, *TAXI_QUALITIES, *MAZE_QUALITIES)))
"""Of all datasets: each collector knows its own."""


def short_name(name: str) -> str:
    """The short name of an environment: `fair-taxi` also goes by `fair-taxi-v0`, `d4morl-ant` by `ant`."""
    aliases = {identifier: short for short, identifier in IDS.items()}
    aliases |= {alias: f"d4morl-{body}" for body in BODIES for alias in (body, f"d4morl-{body}-v0")}
    name = aliases.get(name, name)
    if name not in MAKERS:
        raise InputError(f"there is no environment {name!r}; known: {', '.join(MAKERS)}")
    return name


def make_env(name: str, **arguments: Any) -> Environment | BatchedEnvironment:
    """An environment by name: `make_env("fair-taxi", horizon=40)`. The arguments are its class's own."""
    maker = MAKERS[short_name(name)]
    try:
        inspect.signature(maker).bind(**arguments)
    except TypeError as error:
        known = ", ".join(inspect.signature(maker).parameters)
        raise InputError(f"{name}: {error}; it takes {known}") from error
    return maker(**{key: _tuples(value) for key, value in arguments.items()})


def load_dataset(
    name: str,
    *,
    episodes: int | None = None,
    seed: int = 0,
    quality: str | None = None,
    **arguments: Any,
) -> Episodes:
    """An environment's own dataset, collected from a seed: equal seeds give equal episodes.

    `quality` is mixed (the default) or shifts for Fair-Taxi and the mazes; expert (the default),
    amateur or unstable for the D4MORL bodies. Further arguments go to the environment. The dataset
    remembers its origin, so a run on it can be resumed and evaluated.
    """
    short = short_name(name)
    if short not in COLLECTORS:
        raise InputError(f"{short} has no dataset of its own; those that have: {', '.join(COLLECTORS)}")
    given = {"episodes": episodes, "quality": quality}
    options = {key: value for key, value in given.items() if value is not None}
    dataset = COLLECTORS[short](make_env(short, **arguments), seed=seed, **options)
    origin = {"env": short, "seed": seed, **options, "arguments": arguments}
    return dataclasses.replace(dataset, origin=origin)


def dataset_of(origin: Mapping[str, Any]) -> Episodes:
    """The dataset with this origin, collected again."""
    known = {key: value for key, value in origin.items() if key not in ("env", "arguments")}
    return load_dataset(origin["env"], **known, **origin["arguments"])


def environment_of(origin: Mapping[str, Any] | None) -> Environment | BatchedEnvironment:
    """The environment that a dataset comes from."""
    if origin is None:
        raise InputError("the data of this run came from Python, so its environment is not known")
    return make_env(origin["env"], **origin["arguments"])


def space_of(env: Environment | BatchedEnvironment) -> AugmentedSpace | None:
    """For exact optima beside a learner's; None where states cannot be listed."""
    if not isinstance(env, FiniteEnvironment):
        return None
    return enumerate_space(TabularMOMDP.from_environment(env))


def _tuples(value: Any) -> Any:
    """JSON turns tuples into lists; environments want tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
