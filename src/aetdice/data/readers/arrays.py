"""Formats that hold whole arrays: NumPy archives, the native store, Minari, D4MORL."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Shaped

from aetdice.data.appending import append_episodes, check_objectives
from aetdice.data.coding import coding_from
from aetdice.data.columns import Columns, numbered
from aetdice.data.d4morl import iterate_d4morl, read_d4morl
from aetdice.data.episodes import Episode, Episodes
from aetdice.data.minari import iterate_minari, load_minari, load_minari_facts, save_minari
from aetdice.data.pickles import iterate_pickle
from aetdice.data.readers.arrow import Table, number_in
from aetdice.data.readers.base import Column, Format, Named, Recording, Saved, facts_of, saved_with
from aetdice.data.readers.tables import recording_of
from aetdice.data.recoding import recoded
from aetdice.data.store import MANIFEST, load_episodes, load_facts, save_episodes
from aetdice.errors import InputError
from aetdice.files import read_arrays, write_arrays

ARRAYS = ("observations", "actions", "rewards", "lengths", "terminated", "truncated")
D4MORL_HORIZON = 500


def recording_from(episodes: Episodes, source: str, columns: Columns, facts: Any = None) -> Recording:
    """Arrays column by column, so that the same is decided about them as about a table."""
    names = {}
    for role in ("observations", "actions", "rewards"):
        array = getattr(episodes, role)
        if array.ndim > 2:
            raise InputError(
                f"{source}: {role} have shape {array.shape[1:]} per step; images are not learned from: "
                "give a vector of features instead"
            )
        width = 1 if array.ndim == 1 else array.shape[1]
        if width == 0:
            raise InputError(f"{source}: {role} have no columns")
        names[role] = getattr(columns, role) or numbered(role, width)
        if len(names[role]) != width:
            raise InputError(f"{source}: columns name {len(names[role])} {role}, but there are {width}")
    known = (*names["observations"], *names["actions"])
    if lost := [name for name in (*columns.categories, *columns.numbers) if name not in known]:
        raise InputError(f"{source}: there is no column {lost[0]!r}; the columns are {', '.join(known)}")
    frames = episodes.observations.reshape(len(episodes.observations), -1)
    actions = episodes.actions.reshape(episodes.steps, -1)
    ends = facts.get("ends") if isinstance(facts, Mapping) else None
    return Recording(
        source=source,
        lengths=episodes.lengths,
        terminated=episodes.terminated,
        truncated=episodes.truncated,
        last=np.ones(len(episodes), bool),
        observations=_named(source, names["observations"], frames),
        actions=_named(source, names["actions"], actions),
        rewards=episodes.rewards,
        objectives=names["rewards"] if columns.rewards else episodes.objectives,
        where=lambda episode, step: f"{source}, episode {episode}, step {step}",
        columns=replace(columns, observations=names["observations"], actions=names["actions"]),
        ends=ends,
        frames=frames if frames.dtype.kind in "biuf" else None,
    )


def _named(source: str, names: tuple[str, ...], array: Shaped[np.ndarray, "rows k"]) -> list[Named]:
    return [
        Named(name, partial(column_of, source, name, array[:, index])) for index, name in enumerate(names)
    ]


class Archive(Format):
    """A NumPy archive of plain arrays.

    Either `lengths` and one observation more than steps per episode, as this package writes it; or
    one row per step in every array, with `terminals`, `timeouts`, `episode` or `next_observations`.
    """

    name = "npz"
    words = "a NumPy archive of plain arrays"
    suffixes = (".npz",)

    def table(self, path: Path) -> Table | None:
        """The archive as a table, if it has one row per step."""
        arrays = _arrays(path)
        return None if "lengths" in arrays else _flat(arrays, str(path))

    def raw(self, path: Path, columns: Columns) -> Iterable[Episode]:
        del columns
        arrays = _arrays(path)
        lengths = _whole(arrays["lengths"], "lengths", np.int64)
        starts = np.cumsum(lengths) - lengths
        for index, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
            steps, frames = slice(start, start + length), slice(start + index, start + index + length + 1)
            parts = arrays["observations"][frames], arrays["actions"][steps], arrays["rewards"][steps]
            yield Episode(*parts, False, True)

    def read(self, path: Path, columns: Columns) -> Recording | Saved:
        arrays = _arrays(path)
        if "lengths" not in arrays:
            return recording_of(_flat(arrays, str(path)), columns)
        if lost := [name for name in ARRAYS if name not in arrays]:
            raise InputError(f"{path} has no array {lost[0]!r}; it has {', '.join(arrays)}")
        for name in ("observations", "actions", "rewards"):
            if arrays[name].ndim == 0 or len(arrays[name]) == 0:
                raise InputError(f"{path}: {name} have no rows")
        if arrays["rewards"].ndim > 2:
            raise InputError(
                f"{path}: rewards must have shape (steps, objectives), not {arrays['rewards'].shape}"
            )
        try:
            facts = json.loads(arrays["facts"].tobytes()) if "facts" in arrays else {}
            rewards = arrays["rewards"].reshape(len(arrays["rewards"]), -1).astype(np.float64)
            names = arrays.get("objectives", np.array([f"r{i}" for i in range(rewards.shape[1])]))
            found = Episodes(
                observations=arrays["observations"],
                actions=arrays["actions"],
                rewards=rewards,
                lengths=_whole(arrays["lengths"], "lengths", np.int64),
                terminated=_whole(arrays["terminated"], "terminated", np.bool_),
                truncated=_whole(arrays["truncated"], "truncated", np.bool_),
                objectives=tuple(map(str, names.tolist())),
            )
        except (InputError, ValueError, TypeError, IndexError) as error:
            raise InputError(f"{path}: {error}") from error
        kept = saved_with(found, facts, str(path), columns)
        return kept or recording_from(found, str(path), columns, facts)

    def write(self, path: Path, episodes: Episodes) -> None:
        text = np.frombuffer(json.dumps(facts_of(episodes)).encode(), np.uint8)
        arrays = {name: getattr(episodes, name) for name in ARRAYS}
        write_arrays(path, {**arrays, "objectives": np.array(episodes.objectives), "facts": text})


def _arrays(path: Path) -> dict[str, Shaped[np.ndarray, "..."]]:
    try:
        return read_arrays(path)
    except ValueError as error:
        raise InputError(f"{path} is {error}") from error


def _flat(arrays: Mapping[str, Shaped[np.ndarray, "..."]], source: str) -> Table:
    """Arrays with one row per step as a table: a column for every entry."""
    columns: dict[str, Column] = {}
    rows: int | None = None
    for name, array in arrays.items():
        if array.ndim == 0:
            continue
        if array.ndim > 2:
            raise InputError(
                f"{source}: {name!r} has shape {array.shape}; images are not learned from: give a vector of "
                "features instead"
            )
        if rows is not None and len(array) != rows:
            raise InputError(f"{source}: {name!r} has {len(array)} rows, but the arrays before it {rows}")
        rows = len(array)
        for label, values in _entries(name, array):
            columns[label] = column_of(source, label, values)
    if not columns:
        raise InputError(f"{source} holds no arrays")
    return Table(source, tuple(columns), rows or 0, columns.__getitem__)


def _entries(name: str, array: Shaped[np.ndarray, "..."]) -> list[tuple[str, Any]]:
    if array.ndim == 1:
        return [(name, array)]
    return [(f"{name}_{index}", array[:, index]) for index in range(array.shape[1])]


def _whole(values: Shaped[np.ndarray, "..."], name: str, dtype: Any) -> Shaped[np.ndarray, " n"]:
    """One whole number, or true or false, per episode."""
    if values.ndim != 1 or values.dtype.kind not in "biuf":
        raise InputError(f"{name} has one number per episode, not shape {values.shape} of {values.dtype}")
    with np.errstate(invalid="ignore"):  # NaN is no whole number
        found = values.astype(dtype)
    if not np.array_equal(found, values):
        raise InputError(f"{name} has entries that are not {'0 or 1' if dtype is np.bool_ else 'whole'}")
    return found


def column_of(source: str, name: str, values: Shaped[np.ndarray, " rows"]) -> Column:
    """Numbers as they are, words as categories."""
    if values.dtype.kind in "biuf":
        return Column(values)
    if values.dtype.kind not in "SU":
        raise InputError(
            f"{source}: column {name!r} is of type {values.dtype}: turn it into numbers, or leave it out"
        )
    try:
        words, codes = np.unique(values.astype(str), return_inverse=True)
    except UnicodeDecodeError as error:
        raise InputError(f"{source}: column {name!r} holds bytes that are not ASCII: {error}") from error
    parsed = [number_in(word) for word in words.tolist()]
    if all(number is not None for number in parsed):
        return Column(np.array(parsed, float)[codes.reshape(-1)])
    return Column(codes.reshape(-1), tuple(words.tolist()))


class Store(Format):
    """The package's own folder of memory-mapped arrays."""

    name = "store"
    words = "the native episode store, a folder"

    def recognises(self, path: Path) -> bool:
        return (path / MANIFEST).is_file()

    def read(self, path: Path, columns: Columns) -> Recording | Saved:
        episodes = load_episodes(path)
        facts, source = load_facts(path), str(path)
        return saved_with(episodes, facts, source, columns) or recording_from(
            episodes, source, columns, facts
        )

    def write(self, path: Path, episodes: Episodes) -> None:
        save_episodes(path, episodes, facts=facts_of(episodes))

    def append(self, path: Path, parts: Iterable[Episodes]) -> None:
        """Add episodes to a store, coded as it is."""
        append_episodes(path, (episode for part in parts for episode in _as_in(path, part)))


def _as_in(path: Path, episodes: Episodes) -> Episodes:
    """Episodes in the coding of a store."""
    facts = load_facts(path)
    if facts.get("ends", episodes.ends) != episodes.ends:
        raise InputError(
            f"truncated episodes of {path} are of the kind {facts['ends']!r}, the new ones "
            f"{episodes.ends!r}; say --ends {facts['ends']}"
        )
    check_objectives(path, episodes)
    if facts.get("coding") is None or episodes.coding is None:
        return episodes
    return recoded(episodes, coding_from(facts["coding"]))


class Minari(Format):
    """A Minari dataset on this machine, by id or by folder."""

    name = "minari"
    words = "a Minari dataset (HDF5), by its id"

    def recognises(self, path: Path) -> bool:
        return (path / "data" / "main_data.hdf5").is_file() or (path / "main_data.hdf5").is_file()

    def read(self, path: Path, columns: Columns) -> Recording | Saved:
        return self.read_id(_minari_place(path), columns)

    def raw(self, path: Path, columns: Columns) -> Iterable[Episode]:
        del columns
        return iterate_minari(_minari_place(path))

    def read_id(self, dataset_id: str, columns: Columns) -> Recording | Saved:
        try:
            episodes = load_minari(dataset_id)
        except InputError as error:
            raise InputError(f"{dataset_id}: {error}") from error
        facts = load_minari_facts(dataset_id)
        return saved_with(episodes, facts, dataset_id, columns) or recording_from(
            episodes, dataset_id, columns, facts
        )

    def write(self, path: Path, episodes: Episodes) -> None:
        save_minari(str(path), episodes, facts=facts_of(episodes))


def _minari_place(path: Path) -> str:
    folder = path / "data" if (path / "data").is_dir() else path
    return str(folder) if folder.is_dir() else str(path)


class D4morl(Format):
    """A pickle of D4MORL, read without unpickling."""

    name = "d4morl"
    words = "a pickle of D4MORL, read without running anything"
    suffixes = (".pkl", ".pickle")

    def read(self, path: Path, columns: Columns) -> Recording:
        return recording_from(read_d4morl(path, _Sizes(path, columns)), str(path), columns)

    def raw(self, path: Path, columns: Columns) -> Iterable[Episode]:
        return iterate_d4morl(path, _Sizes(path, columns))

    def write(self, path: Path, episodes: Episodes) -> None:
        del episodes
        raise InputError(f"{path}: pickles are read, not written, since one can run anything; choose npz")


class _Sizes:
    """The layout that a file's own first trajectory has."""

    name = "first trajectory"
    horizon = D4MORL_HORIZON

    def __init__(self, path: Path, columns: Columns) -> None:
        first = next(iter(iterate_pickle(path)), None)
        if not isinstance(first, Mapping):
            raise InputError(f"{path}: D4MORL's files hold a list of dicts, one per trajectory")
        shapes = {key: np.shape(first.get(key, ())) for key in ("observations", "actions", "raw_rewards")}
        if lost := [key for key, shape in shapes.items() if len(shape) != 2]:
            raise InputError(f"{path}, trajectory 0: it has no array {lost[0]!r} with a row per step")
        self.observation_size, self.action_size = shapes["observations"][1], shapes["actions"][1]
        self.objectives = columns.rewards or tuple(f"r{i}" for i in range(shapes["raw_rewards"][1]))
