"""Episodes to and from Minari, as HDF5 with (steps, objectives) rewards; needs `aetdice[minari]`.

Minari's other storage, Arrow, cannot hold vector rewards.
"""

import contextlib
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Shaped

from aetdice.data.episodes import Episode, Episodes, read_episode
from aetdice.errors import InputError


def save_minari(
    dataset_id: str,
    episodes: Iterable[Episode],
    *,
    objectives: Sequence[str] | None = None,
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Write episodes as they come to a local Minari dataset that must not exist yet.

    The names of the objectives and the facts (JSON) go to its metadata.
    """
    minari = _minari()
    if isinstance(episodes, Episodes):
        objectives = objectives or episodes.objectives
    _check_new(minari, dataset_id)
    stream = iter(episodes)
    first = next(stream, None)
    if first is None:
        raise InputError("a dataset needs at least one episode")
    first = read_episode(first, 0)
    complete = False
    try:
        with warnings.catch_warnings(), _quiet_files():
            warnings.simplefilter("ignore", UserWarning)  # about metadata that is optional
            dataset = minari.create_dataset_from_buffers(
                dataset_id,
                buffer=_buffers(minari, first, stream),
                observation_space=_space(first.observations),
                action_space=_space(first.actions),
                data_format="hdf5",
                jpeg_encoding=False,
            )
            names = list(objectives or (f"r{i}" for i in range(first.rewards.shape[1])))
            dataset.storage.update_metadata({"objectives": names, "facts": dict(facts or {})})
        complete = True
    except (OSError, RuntimeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        found = re.search(r"error message = '(.*?)'", str(error))  # of HDF5, somewhere in a long text
        reason = found[1] if found else str(error).splitlines()[0]
        raise InputError(f"{dataset_id} cannot be written: {reason}") from None
    finally:
        if not complete:
            with contextlib.redirect_stdout(None):
                minari.delete_dataset(dataset_id)


@contextlib.contextmanager
def _quiet_files() -> Iterator[None]:
    """Of a file that cannot be written, h5py complains once more for every object that it forgets."""
    before = sys.unraisablehook, sys.excepthook
    sys.unraisablehook, sys.excepthook = (lambda _: None), (lambda *_: None)
    try:
        yield
    finally:
        sys.unraisablehook, sys.excepthook = before


def load_minari(dataset_id: str) -> Episodes:
    """The episodes of a local Minari dataset, by id or folder; scalar rewards are one objective."""
    dataset = _open(dataset_id)
    names = dataset.storage.metadata.get("objectives")
    return Episodes.from_list(_episodes(dataset), None if names is None else list(names))


def iterate_minari(dataset_id: str) -> Iterator[Episode]:
    """Its episodes one by one, unchecked."""
    return _episodes(_open(dataset_id))


def _open(dataset_id: str) -> Any:
    minari = _minari()
    try:
        if (Path(dataset_id) / "main_data.hdf5").is_file():
            return minari.MinariDataset(dataset_id)
        return minari.load_dataset(dataset_id)
    except FileNotFoundError as error:
        raise InputError(f"there is no local Minari dataset {dataset_id!r}; minari list local") from error
    except Exception as error:  # whatever Minari raises at a damaged dataset
        raise InputError(f"the Minari dataset {dataset_id!r} cannot be read: {error}") from error


def minari_ids() -> list[str]:
    """The datasets on this machine; none where Minari is not installed."""
    try:
        return list(_minari().list_local_datasets())
    except InputError:
        return []


def load_minari_facts(dataset_id: str) -> dict[str, Any]:
    """What was recorded about a Minari dataset when it was written here."""
    return dict(_open(dataset_id).storage.metadata.get("facts", {}))


def _episodes(dataset: Any) -> Iterator[Episode]:
    for index, found in enumerate(dataset.iterate_episodes()):
        if not isinstance(found.observations, np.ndarray) or not isinstance(found.actions, np.ndarray):
            raise InputError(
                f"episode {index} has observations or actions in parts (a dict or a tuple); join them "
                "into one array first"
            )
        terminated = bool(found.terminations[-1])
        yield Episode(
            observations=found.observations,
            actions=found.actions,
            rewards=found.rewards.reshape(len(found.rewards), -1),
            terminated=terminated,
            truncated=bool(found.truncations[-1]) or not terminated,  # a cut recording is truncated
        )


def _buffers(minari: Any, first: Episode, rest: Iterator[Episode]) -> Iterator[Any]:
    yield _buffer(minari, first)
    for index, episode in enumerate(rest, start=1):
        yield _buffer(minari, read_episode(episode, index))


def _buffer(minari: Any, episode: Episode) -> Any:
    last = np.arange(len(episode.rewards)) == len(episode.rewards) - 1
    return minari.data_collector.EpisodeBuffer(
        observations=episode.observations,
        actions=episode.actions,
        rewards=episode.rewards,
        terminations=last & episode.terminated,
        truncations=last & episode.truncated,
    )


def _space(values: Shaped[np.ndarray, "rows *s"]) -> Any:
    """A box that holds every value of the type."""
    from gymnasium import spaces

    if values.dtype.kind == "f":
        return spaces.Box(-np.inf, np.inf, values.shape[1:], values.dtype.type)
    if values.dtype.kind == "b":
        return spaces.MultiBinary(values.shape[1:])
    limits = np.iinfo(values.dtype)
    return spaces.Box(limits.min, limits.max, values.shape[1:], values.dtype.type)


def _check_new(minari: Any, dataset_id: str) -> None:
    try:
        known = dataset_id in minari.list_local_datasets()
        minari.dataset.minari_dataset.parse_dataset_id(dataset_id)
    except ValueError as error:
        raise InputError(f"{dataset_id!r} is not a Minari id like ant/expert-v0: {error}") from error
    if known:
        raise InputError(f"the Minari dataset {dataset_id!r} exists; delete it or choose another version")


def _minari() -> Any:
    try:
        import h5py  # noqa: F401
        import minari
        import minari.data_collector
    except ImportError as error:
        raise InputError(f"Minari is not installed ({error}); pip install 'aetdice[minari]'") from error
    return minari
