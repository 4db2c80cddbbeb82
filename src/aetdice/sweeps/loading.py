"""The datasets of a sweep, read or collected, and its objectives as each dataset has them."""

import difflib
import inspect
from collections.abc import Sequence
from numbers import Real
from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np

from aetdice.config.values import fitted
from aetdice.data import Episodes
from aetdice.data.augmentation import check_horizon
from aetdice.datasets import MAKERS, environment_of, load_dataset, name_of_environment
from aetdice.errors import InputError
from aetdice.evaluation import make_objectives, swept_objectives
from aetdice.objectives import Objective, check_objective
from aetdice.progress import tell
from aetdice.sweeps.description import Description, Options, twice_in

OF_FILES = ("columns", "ends", "horizon", "format")
OF_COLLECTIONS = ("episodes", "seed", "quality")
WHOLE = ("episodes", "seed", "horizon")
"""Options of datasets that are whole numbers."""


class Loaded(NamedTuple):
    """A dataset under its name, with what is to be optimised on it."""

    name: str
    episodes: Episodes
    horizon: int
    objectives: list[Objective]


def load_all(description: Description) -> list[Loaded]:
    """Every dataset; `InputError` says which one is refused, and why."""
    found = []
    for entry in description.datasets:
        try:
            found.append(_load(entry, description.objectives))
        except (InputError, OSError) as error:
            raise InputError(f"dataset {entry['name']}: {error}") from error
        tell("datasets", len(found), len(description.datasets))
    return found


def forms_of(objectives: Sequence[Objective]) -> list[list[Objective]]:
    """Together those that differ in parameters only, so that they can share a population."""
    forms: list[list[Objective]] = []
    for objective in objectives:
        alike = (form for form in forms if eqx.tree_equal(_shape(form[0]), _shape(objective)))
        form = next(alike, None)
        if form is None:
            forms.append([objective])
        else:
            form.append(objective)
    return forms


def _shape(objective: Objective) -> object:
    return jax.tree.map(np.shape, objective)


def _load(entry: Options, objectives: Sequence[Options]) -> Loaded:
    options = {key: value for key, value in entry.items() if key not in ("name", "data")}
    _check_options(entry["data"], options)
    try:
        episodes = load_dataset(entry["data"], **options)
    except InputError:
        raise
    except (TypeError, ValueError) as error:  # of environments, which trust whoever makes them
        raise InputError(f"one of its options cannot be used: {error}") from error
    if episodes.origin is not None and "env" in episodes.origin:
        env = environment_of(episodes.origin)
        horizon = env.horizon
        found = [one for given in objectives for one in make_objectives(_texts(given), env)]
    else:
        horizon, count = episodes.horizon or int(episodes.lengths.max()), len(episodes.objectives)
        found = [one for given in objectives for one in swept_objectives(_texts(given), count, horizon)]
    if twice := twice_in([objective.name for objective in found]):
        raise InputError(f"the objective {twice} is given twice")
    check_horizon(episodes, horizon)
    for objective in found:
        check_objective(objective, episodes.returns)
    return Loaded(entry["name"], episodes, horizon, found)


def _texts(given: Options) -> Options:
    """`InputError` where an option is of another type than all of its kind."""
    for name, value in given.items():
        words = name in ("objective", "utility", "aggregation", "continuation")
        kind = str if words else Real
        several = value if isinstance(value, list | tuple) and not words else [value]
        if not several or any(isinstance(each, bool) or not isinstance(each, kind) for each in several):
            raise InputError(f"{name} of an objective is {'text' if words else 'a number'}, not {value!r}")
    return given


def _check_options(data: str, options: Options) -> None:
    env = name_of_environment(data)
    own = (*OF_COLLECTIONS, *inspect.signature(MAKERS[env]).parameters) if env else OF_FILES
    for key in options:
        if key not in own:
            near = difflib.get_close_matches(key, own, 1, 0.5)
            raise InputError(
                f"it takes no {key!r}; "
                + (f"did you mean {near[0]}?" if near else f"known: {', '.join(own)}")
            )
        if key in WHOLE:
            fitted(key, options[key], int)
