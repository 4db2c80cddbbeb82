"""Episodes in memory: ragged, vector-rewarded, and checked on the way in."""

import functools
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from aetdice.data.coding import Coding
from aetdice.data.ends import Ends
from aetdice.data.mapping import BLOCK, release, row_blocks
from aetdice.errors import InputError


class Episode(NamedTuple):
    """One episode: T actions and reward vectors, T+1 observations, and how it ended."""

    observations: Any
    actions: Any
    rewards: Any
    terminated: bool
    truncated: bool


@dataclass(frozen=True, eq=False)
class Episodes:
    """N episodes laid end to end: `steps` actions and rewards, `steps + N` observations.

    `terminated` says that the process ended, `truncated` that only the recording did (the
    time limit included); each episode has at least one of them. Arrays are checked once,
    here, so everything after may rely on them.
    """

    observations: Shaped[np.ndarray, "frames *o"]
    actions: Shaped[np.ndarray, "steps *a"]
    rewards: Float[np.ndarray, "steps m"]
    lengths: Int[np.ndarray, " n"]
    terminated: Bool[np.ndarray, " n"]
    truncated: Bool[np.ndarray, " n"]
    objectives: tuple[str, ...]
    origin: Mapping[str, Any] | None = None
    """How to get the same dataset again, as JSON has it, if that is known."""
    coding: Coding | None = None
    """What columns, categories and actions are called, where a file said so."""
    horizon: int | None = None
    """After how many steps an episode is over at the latest, where that was said."""
    ends: Ends = "recording"
    """What truncation before the horizon means: the recording was cut, or the shift was over."""
    notes: tuple[str, ...] = ()
    """What a reader found and decided, in words."""
    starts: Int[np.ndarray, " n"] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "starts", np.cumsum(self.lengths) - self.lengths)
        _check(self)

    @classmethod
    def from_list(cls, episodes: Iterable[Episode], objectives: Sequence[str] | None = None) -> "Episodes":
        """Lay episodes end to end, each checked by itself first."""
        episodes = [read_episode(episode, index) for index, episode in enumerate(episodes)]
        if not episodes:
            raise InputError("a dataset needs at least one episode")
        for index, episode in enumerate(episodes):
            check_alike(index, episode, episodes[0])
        names = tuple(objectives or (f"r{i}" for i in range(episodes[0].rewards.shape[1])))
        return cls(
            observations=np.concatenate([episode.observations for episode in episodes]),
            actions=np.concatenate([episode.actions for episode in episodes]),
            rewards=np.concatenate([episode.rewards for episode in episodes]),
            lengths=np.array([len(episode.rewards) for episode in episodes]),
            terminated=np.array([bool(episode.terminated) for episode in episodes]),
            truncated=np.array([bool(episode.truncated) for episode in episodes]),
            objectives=names,
        )

    @classmethod
    def joined(cls, datasets: Sequence["Episodes"]) -> "Episodes":
        """All episodes of several datasets of one kind."""
        parts = ("observations", "actions", "rewards", "lengths", "terminated", "truncated")
        every: dict[str, Any] = {
            part: np.concatenate([getattr(one, part) for one in datasets]) for part in parts
        }
        return replace(datasets[0], **every, origin=None)

    def select(self, rows: Int[np.ndarray, " k"]) -> "Episodes":
        """Some of the episodes, in the order given."""
        lengths = self.lengths[rows]
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        steps = np.repeat(self.starts[rows], lengths) + within
        inside = np.arange((lengths + 1).sum()) - np.repeat(np.cumsum(lengths + 1) - lengths - 1, lengths + 1)
        frames = np.repeat(self.starts[rows] + rows, lengths + 1) + inside
        return replace(
            self,
            observations=_rows(self.observations, frames),
            actions=_rows(self.actions, steps),
            rewards=_rows(self.rewards, steps),
            lengths=lengths,
            terminated=self.terminated[rows],
            truncated=self.truncated[rows],
            origin=None,
        )

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> Episode:
        if not -len(self) <= index < len(self):
            raise IndexError(f"episode {index} of {len(self)}")
        index %= len(self)
        start, length = self.starts[index], self.lengths[index]
        frame = start + index
        return Episode(
            self.observations[frame : frame + length + 1],
            self.actions[start : start + length],
            self.rewards[start : start + length],
            bool(self.terminated[index]),
            bool(self.truncated[index]),
        )

    def __iter__(self) -> Iterator[Episode]:
        return (self[index] for index in range(len(self)))

    def settled(self) -> "Episodes":
        """Ends by design as terminations: nothing follows them, ν' = 0 and their mass leaves.

        Those of the longest episodes stay truncated as well: that is the clock's doing, not a state's;
        unless an observation tells of the end, as the time that is left does.
        """
        if self.ends == "recording":
            return self
        over = np.ones(len(self), dtype=bool)
        longest = self.lengths >= (self.horizon or self.lengths.max())
        clock = self.truncated & longest & (not self._shows_its_end())
        return replace(self, terminated=over, truncated=clock, ends="recording")

    def _shows_its_end(self) -> bool:
        """Whether some column of whole numbers has values before the last step that it never has else."""
        if not np.issubdtype(self.observations.dtype, np.integer):
            return False
        frames = self.observations.reshape(len(self.observations), -1)
        final = self.starts + np.arange(len(self)) + self.lengths - 1
        running = np.ones(len(frames), bool)
        running[final], running[final + 1] = False, False
        return any(not np.isin(column[running], np.unique(column[final])).any() for column in frames.T)

    def runs(self) -> Iterator[tuple[int, int]]:
        """Runs of consecutive episodes, from and to, with about a block of steps each."""
        ends = self.starts + self.lengths
        full = np.searchsorted(ends, np.arange(BLOCK, self.steps + BLOCK, BLOCK)) + 1
        edges = np.unique(np.minimum(full, len(self))).tolist()
        return zip([0, *edges[:-1]], edges, strict=True)

    @property
    def steps(self) -> int:
        return len(self.rewards)

    @property
    def returns(self) -> Float[np.ndarray, "n m"]:
        """R of every episode."""
        found = np.empty((len(self), self.rewards.shape[1]))
        for first, after in self.runs():
            start, end = self.starts[first], self.starts[after - 1] + self.lengths[after - 1]
            found[first:after] = np.add.reduceat(
                self.rewards[start:end], self.starts[first:after] - start, axis=0
            )
            release(self.rewards)
        return found

    @functools.cached_property
    def sha256(self) -> str:
        """A digest of all that was recorded."""
        digest = hashlib.sha256()
        recorded = (
            self.observations,
            self.actions,
            self.rewards,
            self.lengths,
            self.terminated,
            self.truncated,
        )
        for array in recorded:
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            for _, rows in row_blocks(array):
                digest.update(np.ascontiguousarray(rows).data)
        return digest.hexdigest()


def _rows(array: Shaped[np.ndarray, "all *s"], rows: Int[np.ndarray, " k"]) -> Shaped[np.ndarray, "k *s"]:
    found = array[rows]
    release(array)
    return found


def read_episode(episode: Episode, index: int) -> Episode:
    """The episode as arrays of numbers, rewards in float64."""
    rewards = _numbers(episode.rewards, index, "rewards", np.float64)
    if rewards.ndim != 2:
        raise InputError(
            f"episode {index}: rewards must have shape (steps, objectives), not {rewards.shape}; "
            "one objective is a column of its own"
        )
    return episode._replace(
        observations=_numbers(episode.observations, index, "observations"),
        actions=_numbers(episode.actions, index, "actions"),
        rewards=rewards,
    )


def _numbers(values: Any, index: int, part: str, dtype: Any = None) -> Shaped[np.ndarray, "rows *s"]:
    """The values as one array with a row per step."""
    try:
        array = np.asarray(values, dtype=dtype)
    except (ValueError, TypeError) as error:
        raise InputError(f"episode {index}: {part} must be numbers in equal rows: {error}") from error
    if array.ndim == 0 or array.dtype.kind not in "biuf":
        raise InputError(f"episode {index}: {part} must be numbers, one row per step")
    return array


def check_alike(index: int, episode: Episode, first: Episode) -> None:
    """The parts of one episode fit each other, and it has the shapes of the first."""
    steps = len(episode.rewards)
    if steps == 0:
        raise InputError(f"episode {index} has no steps")
    if len(episode.actions) != steps:
        raise InputError(f"episode {index} has {steps} rewards but {len(episode.actions)} actions")
    if len(episode.observations) != steps + 1:
        raise InputError(
            f"episode {index} has {steps} steps and so needs {steps + 1} observations "
            f"(the last one included), not {len(episode.observations)}"
        )
    for part in ("observations", "actions", "rewards"):
        here, there = getattr(episode, part).shape[1:], getattr(first, part).shape[1:]
        if here != there:
            raise InputError(f"episode {index}: {part} have shape {here} per step, but {there} in episode 0")


def _check(episodes: Episodes) -> None:
    n, steps, m = len(episodes.lengths), *episodes.rewards.shape
    if n == 0 or np.any(episodes.lengths < 1):
        raise InputError("a dataset needs at least one episode, and every episode at least one step")
    if m == 0:
        raise InputError("rewards need at least one objective")
    sizes = {
        "rewards": (steps, episodes.lengths.sum()),
        "actions": (len(episodes.actions), steps),
        "observations": (len(episodes.observations), steps + n),
        "terminated": (len(episodes.terminated), n),
        "truncated": (len(episodes.truncated), n),
        "objectives": (len(episodes.objectives), m),
    }
    for part, (found, expected) in sizes.items():
        if found != expected:
            raise InputError(f"{part} has {found} entries, but the episodes need {expected}")
    if len(set(episodes.objectives)) != m:
        raise InputError(f"objective names must differ: {', '.join(episodes.objectives)}")
    open_ended = np.flatnonzero(~episodes.terminated & ~episodes.truncated)
    if open_ended.size:
        raise InputError(f"episode {open_ended[0]} ends neither terminated nor truncated; say which")
    _check_finite(episodes, "rewards", episodes.rewards, episodes.starts)
    _check_finite(episodes, "actions", episodes.actions, episodes.starts)
    _check_finite(episodes, "observations", episodes.observations, episodes.starts + np.arange(n))


def _check_finite(
    episodes: Episodes, part: str, values: Shaped[np.ndarray, "rows *s"], starts: Int[np.ndarray, " n"]
) -> None:
    if not np.issubdtype(values.dtype, np.floating):
        return
    for first, rows in row_blocks(values):  # the values may be larger than the memory
        finite = np.isfinite(rows)
        if not np.all(finite):
            row, *column = np.argwhere(~finite)[0]
            _refuse(episodes, part, values, starts, int(row) + first, column)


def _refuse(
    episodes: Episodes,
    part: str,
    values: Shaped[np.ndarray, "rows *s"],
    starts: Int[np.ndarray, " n"],
    row: int,
    column: list[Any],
) -> None:
    """Say which entry is not finite."""
    episode = int(np.searchsorted(starts, row, side="right")) - 1
    where = f"episode {episode}, step {row - starts[episode]}"
    if part == "rewards":
        where += f", objective {episodes.objectives[column[0]]!r}"
    elif column:
        where += f", column {column[0]}"
    raise InputError(f"{part} must be finite, but {where} is {values[(row, *column)]}")
