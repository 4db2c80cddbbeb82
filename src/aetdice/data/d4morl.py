"""The files of D4MORL: a pickled list of trajectories, read without running anything.

Each trajectory is a dict of arrays: `observations`, `actions`, `next_observations`,
`raw_rewards`, `terminals`, `preference`. Its `terminals` include the time limit: an end at the
horizon is the horizon, an earlier one a termination.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Shaped

from aetdice.data.episodes import Episode, Episodes
from aetdice.data.pickles import iterate_pickle
from aetdice.errors import InputError

KEYS = ("observations", "actions", "next_observations", "raw_rewards", "terminals")
ROWS = 1 << 16


@runtime_checkable
class Layout(Protocol):
    """What a file must fit; every body has it."""

    @property
    def name(self) -> str: ...
    @property
    def observation_size(self) -> int: ...
    @property
    def action_size(self) -> int: ...
    @property
    def objectives(self) -> tuple[str, ...]: ...
    @property
    def horizon(self) -> int: ...


def iterate_d4morl(path: str | Path, body: Layout) -> Iterator[Episode]:
    """The trajectories of a file, one in memory at a time.

    Observations and actions become float32, rewards stay float64. The preferences that the
    behaviour followed are not kept.
    """
    path = Path(path)
    for index, trajectory in enumerate(iterate_pickle(path)):
        try:
            yield _episode(trajectory, body)
        except InputError as error:
            raise InputError(f"{path}, trajectory {index}: {error}") from error


def read_d4morl(path: str | Path, body: Layout, limit: int | None = None) -> Episodes:
    """The trajectories of a file in memory, or the first `limit` of them.

    Files larger than the memory go to a store: `save_episodes(store, iterate_d4morl(path, body))`.
    """
    if limit is not None and limit < 1:
        raise InputError(f"at least one trajectory is needed, not {limit}")
    parts = {name: _Growing() for name in ("observations", "actions", "rewards")}
    lengths, terminated = [], []
    for episode in iterate_d4morl(path, body):
        for name, part in parts.items():
            part.append(getattr(episode, name))
        lengths.append(len(episode.rewards))
        terminated.append(episode.terminated)
        if len(lengths) == limit:
            break
    joined: dict[str, Any] = {name: part.finish() for name, part in parts.items()}
    return Episodes(
        **joined,
        lengths=np.array(lengths),
        terminated=np.array(terminated),
        truncated=~np.array(terminated),
        objectives=body.objectives,
    )


def _episode(trajectory: Mapping[str, Any], body: Layout) -> Episode:
    observations, actions, following, rewards, terminals = (_array(trajectory, key) for key in KEYS)
    steps = rewards.shape[0] if rewards.ndim == 2 else 0
    expected = {
        "observations": (steps, body.observation_size),
        "actions": (steps, body.action_size),
        "next_observations": (steps, body.observation_size),
        "raw_rewards": (steps, len(body.objectives)),
        "terminals": (steps,),
    }
    for key, shape in expected.items():
        if trajectory[key].shape != shape:
            raise InputError(
                f"{key} have shape {trajectory[key].shape}, but the {body.name} needs {shape}; "
                "is this the file of another body?"
            )
    if not 1 <= steps <= body.horizon:
        raise InputError(f"it has {steps} steps, but episodes have 1 to {body.horizon}")
    if np.any(terminals[:-1]):
        raise InputError(f"it goes on after the terminal step {np.flatnonzero(terminals)[0]}")
    if not np.array_equal(observations[1:], following[:-1], equal_nan=True):
        raise InputError("a next observation is not the observation of the next step")
    ended = bool(terminals[-1]) and steps < body.horizon
    with np.errstate(over="ignore"):  # infinities are refused with the episode and the step
        return Episode(
            observations=np.concatenate([observations, following[-1:]], dtype=np.float32, casting="unsafe"),
            actions=actions.astype(np.float32),
            rewards=rewards.astype(np.float64),
            terminated=ended,
            truncated=not ended,
        )


def _array(trajectory: Mapping[str, Any], key: str) -> Shaped[np.ndarray, "..."]:
    if key not in trajectory:
        found = ", ".join(repr(name[:40]) for name in list(trajectory)[:8])
        raise InputError(f"it has no {key!r}, only {found or 'nothing'}")
    if not isinstance(trajectory[key], np.ndarray):
        raise InputError(f"its {key!r} is not an array")
    return trajectory[key]


class _Growing:
    """Rows that arrive in pieces; the pieces are given back while they are joined."""

    def __init__(self) -> None:
        self._blocks: list[Shaped[np.ndarray, rows * s]] = []
        self._free = 0
        self._count = 0

    def append(self, rows: Shaped[np.ndarray, "rows *s"]) -> None:
        self._count += len(rows)
        while len(rows):
            if self._free == 0:
                self._blocks.append(np.empty((ROWS, *rows.shape[1:]), rows.dtype))
                self._free = ROWS
            piece, rows = rows[: self._free], rows[self._free :]
            start = ROWS - self._free
            self._blocks[-1][start : start + len(piece)] = piece
            self._free -= len(piece)

    def finish(self) -> Shaped[np.ndarray, "rows *s"]:
        whole = np.empty((self._count, *self._blocks[0].shape[1:]), self._blocks[0].dtype)
        self._blocks.reverse()
        for start in range(0, self._count, ROWS):
            block = self._blocks.pop()
            whole[start : start + ROWS] = block[: self._count - start]
        return whole
