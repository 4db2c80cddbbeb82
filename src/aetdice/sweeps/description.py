"""What a sweep's file says, read into types: datasets, objectives, algorithms, values, how to run them."""

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from glob import escape, has_magic, iglob
from pathlib import Path
from typing import Any

from aetdice.algorithms import ALGORITHMS
from aetdice.config import TrainingConfig
from aetdice.config.values import fitted
from aetdice.data.urls import check_recordable, is_url
from aetdice.datasets import is_data, name_of_environment
from aetdice.engines.running import RETRIES
from aetdice.errors import InputError
from aetdice.evaluation.scores import EPISODES
from aetdice.sweeps.values import Range, is_value, values_of

Options = dict[str, Any]
CRITERIA = ("offline", "estimate", "environment")
GIB = 1 << 30
LARGEST_SEED = (1 << 31) - 1


@dataclass(frozen=True)
class Packing:
    """What one job may take."""

    memory: float = 2.0
    """In GiB."""
    members: int = 16


@dataclass(frozen=True)
class Search:
    """How many values to try, how many at a time, and what to maximise."""

    trials: int
    batch: int
    criterion: str


@dataclass(frozen=True)
class AlgorithmEntry:
    """An algorithm, and by name the values of all that varies for it: a list, or a range to search."""

    algorithm: str
    values: dict[str, list[Any] | Range]


@dataclass(frozen=True)
class Description:
    """A sweep as its user wrote it."""

    datasets: list[Options]
    """What `load_dataset` takes, with `data` and a `name`."""
    objectives: list[Options]
    algorithms: list[AlgorithmEntry]
    seeds: list[int]
    config: TrainingConfig
    episodes: int
    packing: Packing
    threads: int
    gpus: float
    retries: int
    search: Search | None


KEYS = (
    "datasets", "objectives", "algorithms", "grid", "seeds", "settings", "effort", "episodes", "packing",
    "threads", "gpus", "retries", "search", "trials", "batch", "criterion",
)  # fmt: skip


def read_description(source: Mapping[str, Any] | Path | str) -> Description:
    """The description in a TOML file, or as a mapping; `InputError` says which entry is wrong."""
    if isinstance(source, Mapping):
        return description_from(source)
    path = Path(source)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        return description_from(content, path.parent)
    except FileNotFoundError as error:
        raise InputError(f"there is no file {path}") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # of the file's text, its TOML or what it says
        raise InputError(f"{path}: {error}") from error


def description_from(content: Mapping[str, Any], folder: Path | None = None) -> Description:
    """The same of a mapping; relative paths are relative to the folder."""
    _check_keys(content, KEYS, "a sweep")
    grid = _table(content, "grid")
    algorithms = [_algorithm(entry, grid) for entry in _entries(content, "algorithms", "algorithm")]
    config = TrainingConfig.from_record(_table(content, "settings"))
    if "effort" in content:
        config = config.adapted({"trainer.effort": content["effort"]})
    search = _search(content, algorithms)
    _check_read(grid, config, algorithms)
    return Description(
        datasets=_datasets(_entries(content, "datasets", "data"), folder),
        objectives=_entries(content, "objectives", "objective"),
        algorithms=algorithms,
        seeds=_seeds(content.get("seeds", [0])),
        config=config,
        episodes=_whole(content, "episodes", EPISODES, 1),
        packing=_packing(_table(content, "packing")),
        threads=_whole(content, "threads", 1, 1),
        gpus=_gpus(content.get("gpus", 0.0)),
        retries=_whole(content, "retries", RETRIES, 0),
        search=search,
    )


def _entries(content: Mapping[str, Any], name: str, main: str) -> list[Options]:
    """A list of tables, in which a word stands for a table with one entry."""
    given = content.get(name)
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        raise InputError(f"a sweep needs {name}: a list of names, or [[{name}]] tables")
    entries = [{main: entry} if isinstance(entry, str | Path) else entry for entry in given]
    for entry in entries:
        if not isinstance(entry, Mapping):
            raise InputError(f"{name} are names or tables, not {entry!r}")
    return [dict(entry) for entry in entries]


def _datasets(entries: list[Options], folder: Path | None) -> list[Options]:
    """With a name each, and with paths that do not depend on where the sweep is started."""
    found: list[Options] = []
    for entry in entries:
        if not isinstance(entry.get("data"), str | Path):
            raise InputError(
                "a dataset of a sweep needs data: a file, a URL, a Minari id or an environment's name; "
                f"not {entry.get('data')!r}. What is in memory has to be saved first"
            )
        data = str(entry["data"])
        check_recordable(data)
        name = entry.get("name", data)
        if not isinstance(name, str) or not name:
            raise InputError(f"name of a dataset is text, not {name!r}")
        found.append({**entry, "data": _place(data, folder), "name": name})
    if twice := twice_in([entry["name"] for entry in found]):
        raise InputError(f"two datasets are called {twice!r}: give them a name each")
    return found


def _place(data: str, folder: Path | None) -> str:
    """What is beside the sweep's file, by its whole path; the runs of `fair-taxi.toml` are no data."""
    if folder is None or is_url(data):
        return data
    beside = folder / data
    pattern = str(Path(escape(str(folder.resolve()))) / data)
    if not beside.exists() and has_magic(data) and any(iglob(pattern, recursive=True)):
        return pattern
    if not beside.exists() or (name_of_environment(data) and not is_data(beside)):
        return data
    return str(beside.resolve())


def twice_in(names: Sequence[str]) -> str | None:
    """A name that occurs more than once."""
    return next((name for name in names if names.count(name) > 1), None)


def _algorithm(entry: Options, grid: Mapping[str, Any]) -> AlgorithmEntry:
    """With the grid's values that it reads, unless it has its own."""
    name = entry.pop("algorithm", None)
    if not isinstance(name, str):
        raise InputError(f"algorithm is one name, not {name!r}: several are several [[algorithms]]")
    if name not in ALGORITHMS:
        near = difflib.get_close_matches(name, ALGORITHMS, 1)
        hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(ALGORITHMS)}"
        raise InputError(f"there is no algorithm {name!r}; {hint}")
    for key in entry:
        if not is_value(key, name):
            raise InputError(f"{name} does not read {key}")
    shared = {key: value for key, value in grid.items() if is_value(key, name) and key not in entry}
    return AlgorithmEntry(name, {key: values_of(key, value) for key, value in {**shared, **entry}.items()})


def _check_read(grid: Mapping[str, Any], config: TrainingConfig, algorithms: list[AlgorithmEntry]) -> None:
    names = [entry.algorithm for entry in algorithms]
    if twice := twice_in(names):
        raise InputError(
            f"{twice} is there twice: its settings are compared with each other, so give them as lists"
        )
    for key in (*grid, *config.changed()):
        if not any(is_value(key, name) for name in names):
            readers = [name for name in ALGORITHMS if is_value(key, name)]
            raise InputError(f"no algorithm of this sweep reads {key}; it belongs to {', '.join(readers)}")


def _search(content: Mapping[str, Any], algorithms: list[AlgorithmEntry]) -> Search | None:
    if "search" not in content:
        ranges = [
            key for each in algorithms for key, value in each.values.items() if isinstance(value, Range)
        ]
        asked = [key for key in ("trials", "batch", "criterion") if key in content]
        if ranges or asked:
            raise InputError(f'{(ranges + asked)[0]} is for a search: say search = "optuna"')
        return None
    if content["search"] != "optuna":
        raise InputError(f'search is "optuna", not {content["search"]!r}')
    if "trials" not in content:
        raise InputError("a search needs trials: how many settings to try")
    for each in algorithms:
        if not any(isinstance(value, Range) or len(value) > 1 for value in each.values.values()):
            raise InputError(f"there is nothing to search for {each.algorithm}: give it ranges or choices")
    criterion = content.get("criterion", CRITERIA[0])
    if criterion not in CRITERIA:
        raise InputError(f"criterion is one of {', '.join(CRITERIA)}; not {criterion!r}")
    return Search(_whole(content, "trials", 0, 1), _whole(content, "batch", 4, 1), criterion)


def _packing(given: Mapping[str, Any]) -> Packing:
    _check_keys(given, tuple(field.name for field in fields(Packing)), "packing")
    memory = _positive("packing.memory", given.get("memory", Packing.memory))
    return Packing(memory, _whole(given, "members", Packing.members, 1))


def _seeds(given: Any) -> list[int]:
    seeds = [fitted("seeds", seed, int) for seed in (given if isinstance(given, list | tuple) else [given])]
    if not seeds or len(set(seeds)) < len(seeds):
        raise InputError(f"seeds need at least one whole number, each once; not {given!r}")
    if most := [seed for seed in seeds if not -LARGEST_SEED <= seed <= LARGEST_SEED]:
        raise InputError(f"a seed has 32 bits, {LARGEST_SEED} at most; not {most[0]}")
    return seeds


def _whole(content: Mapping[str, Any], name: str, default: int, least: int) -> int:
    value: int = fitted(name, content.get(name, default), int)
    if value < least:
        raise InputError(f"{name} must be at least {least}, not {value}")
    return value


def _positive(name: str, value: Any, *, zero: bool = False) -> float:
    number: float = fitted(name, value, float)
    if not (number >= 0 if zero else number > 0) or number == float("inf"):
        raise InputError(f"{name} must be {'at least 0' if zero else 'positive'}, not {number:g}")
    return number


def _gpus(value: Any) -> float:
    number = _positive("gpus", value, zero=True)
    if number > 1 and number != int(number):
        raise InputError(f"gpus are a share of one or a whole number, not {number:g}")
    return number


def _table(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = content.get(name, {})
    if not isinstance(table, Mapping):
        raise InputError(f"{name} is a table, not {table!r}")
    return table


def _check_keys(content: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for key in content:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, 1, 0.5)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
            raise InputError(f"{where} has no {key!r}; {hint}")
