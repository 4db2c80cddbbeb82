"""Datasets: files and tables of one's own, Minari's, and the environments' own by name."""

import dataclasses
import inspect
import os
from collections.abc import Callable, Mapping
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from aetdice.behaviours import collect_body
from aetdice.behaviours.collection import QUALITIES as BODY_QUALITIES
from aetdice.behaviours.collection import TRAJECTORIES
from aetdice.data import Columns, Episodes, read_table
from aetdice.data.loading import load_place
from aetdice.data.minari import minari_ids
from aetdice.data.readers import FORMATS, Place, is_place, locate
from aetdice.data.urls import is_url, local_path
from aetdice.envs import ENVIRONMENTS, IDS, FiniteEnvironment
from aetdice.envs.batched import BatchedEnvironment
from aetdice.envs.dispatch import collect_dispatch
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
    "dispatch": collect_dispatch,
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
    data: Any,
    *,
    columns: Columns | Mapping[str, Any] | None = None,
    ends: str | None = None,
    format: str | None = None,
    episodes: int | None = None,
    seed: int | None = None,
    quality: str | None = None,
    **arguments: Any,
) -> Episodes:
    """The episodes of a file, a table, a Minari id on this machine, or an environment's name.

    Of a file or table (docs/your-data.md) `columns` says which column is what, `ends` what truncated
    ends are (shift or recording), `horizon` how long an episode can last; what is not said is decided
    from the data, and `notes` of the dataset say how. Of an environment's own dataset, `episodes` and
    `seed` say what to collect (equal seeds give equal episodes), and further arguments go to the
    environment. `quality` is mixed (the default) or shifts for Fair-Taxi and the mazes; expert (the
    default), amateur or unstable for the D4MORL bodies.
    """
    how = {"columns": columns, "ends": ends, "format": format}
    what = {"episodes": episodes, "seed": seed, "quality": quality}
    if not isinstance(data, str | PathLike):
        _refuse("a table", {**what, "format": format}, arguments, "horizon")
        return read_table(data, _columns(columns), ends=ends, horizon=arguments.get("horizon"))
    if isinstance(data, str) and name_of_environment(data) is not None:
        _refuse(f"the environment {data}", how, {})
        return _collect(data, 0 if seed is None else seed, episodes, quality, arguments)
    _refuse(f"the file {data}", what, arguments, "horizon")
    return _load_file(str(data), _columns(columns), ends, arguments.get("horizon"), format)


def _load_file(
    data: str, columns: Columns, ends: str | None, horizon: int | None, format: str | None
) -> Episodes:
    place = place_of(data, format)
    found = load_place(place, columns, ends, horizon)
    named = "minari" if place.format is FORMATS["minari"] and not is_place(data) else format
    origin: dict[str, Any] = {"file": place.name, **(found.origin or {}), "ends": found.ends}
    origin |= {key: value for key, value in (("horizon", horizon), ("format", named)) if value is not None}
    return dataclasses.replace(found, origin=origin)


def place_of(data: str, format: str | None = None) -> Place:
    """The file, folder, pattern, URL or Minari id that is meant; paths as they are from wherever one is."""
    if is_url(data):
        return locate(data, format)
    path = Path(local_path(data))
    if is_place(data):
        return locate(os.path.realpath(path), format)
    if format == "minari" or (format is None and data in minari_ids()):
        return locate(data, "minari")
    known = ", ".join(COLLECTORS)
    if path.suffix or len(path.parts) > 1:
        raise InputError(
            f"there is no file {data}, no environment of that name ({known}), and no such Minari dataset "
            "on this machine"
        )
    raise InputError(
        f"there is no environment {data!r} (known: {known}), and no file or Minari dataset of that name"
    )


def _columns(given: Columns | Mapping[str, Any] | None) -> Columns:
    if given is None or isinstance(given, Columns):
        return given or Columns()
    return Columns.from_record(given)


def name_of_environment(data: str) -> str | None:
    """The short name of the environment that is meant; a file or store of the same name goes first."""
    if is_data(Path(data)):
        return None
    try:
        return short_name(data)
    except InputError:
        return None


def is_data(path: Path) -> bool:
    """Whether there is a file, or a folder with data in it: runs, say, may be called as an environment."""
    return path.is_file() or (path.is_dir() and any(each.recognises(path) for each in FORMATS.values()))


def _refuse(what: str, options: Mapping[str, Any], arguments: Mapping[str, Any], *known: str) -> None:
    given = [name for name, value in options.items() if value is not None]
    given += [name for name in arguments if name not in known]
    if given:
        raise InputError(f"{what} takes no {given[0]}")


def _collect(
    name: str, seed: int, episodes: int | None, quality: str | None, arguments: Mapping[str, Any]
) -> Episodes:
    """An environment's own dataset; it remembers its origin, so a run on it can be resumed and evaluated."""
    short = short_name(name)
    if short not in COLLECTORS:
        raise InputError(f"{short} has no dataset of its own; those that have: {', '.join(COLLECTORS)}")
    given = {"episodes": episodes, "quality": quality}
    options = {key: value for key, value in given.items() if value is not None}
    dataset = COLLECTORS[short](make_env(short, **arguments), seed=seed, **options)
    origin = {"env": short, "seed": seed, **options, "arguments": arguments}
    return dataclasses.replace(dataset, origin=origin)


def dataset_of(origin: Mapping[str, Any]) -> Episodes:
    """The dataset with this origin, read or collected again."""
    if "file" in origin:
        options = {key: value for key, value in origin.items() if key != "file"}
        return load_dataset(origin["file"], **options)
    episodes, quality = origin.get("episodes"), origin.get("quality")
    return _collect(origin["env"], origin["seed"], episodes, quality, origin["arguments"])


def environment_of(origin: Mapping[str, Any] | None) -> Environment | BatchedEnvironment:
    """The environment that a dataset comes from."""
    if origin is None:
        raise InputError("the data of this run came from Python, so its environment is not known")
    if "file" in origin:
        raise InputError(
            f"the data of this run is the file {origin['file']}, which has no environment to act in: its "
            "verdict is in result.json, aetdice estimate says what it would attain by the log, and in Python "
            "run.evaluate(env) takes an environment of yours"
        )
    return make_env(origin["env"], **origin["arguments"])


def space_of(env: Environment | BatchedEnvironment) -> AugmentedSpace | None:
    """For exact optima beside a learner's; None where states cannot be listed."""
    if not isinstance(env, FiniteEnvironment):
        return None
    return enumerate_space(TabularMOMDP.from_environment(env))


def _tuples(value: Any) -> Any:
    """JSON turns tuples into lists; environments want tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
