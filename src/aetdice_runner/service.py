"""Episodes by unguessable id: bounded in number, forgotten when nobody asks about them."""

from __future__ import annotations

import math
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from aetdice_runner.checks import shown
from aetdice_runner.errors import InputError
from aetdice_runner.runner import Runner
from aetdice_runner.sessions import Sessions

SESSIONS, IDLE = 10_000, 600.0


class FullError(InputError):
    """As many episodes are open as may be."""


class LostError(InputError):
    """No episode has this id, or no longer."""


class Service:
    """One episode per id, each with a memory and randomness of its own."""

    def __init__(
        self,
        runner: Runner,
        *,
        sessions: int = SESSIONS,
        idle: float = IDLE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if sessions < 1:
            raise InputError(f"at least one session is needed, not {sessions}")
        if not 0 < idle < math.inf:
            raise InputError(f"the idle time is a positive number of seconds, not {idle}")
        self.runner, self.limit, self.idle = runner, sessions, idle
        self.started = self.evicted = self.decisions = 0
        self._clock = clock
        self._episodes: OrderedDict[str, tuple[Sessions, float]] = OrderedDict()
        """With the time of their last use, the longest unused first."""

    def __len__(self) -> int:
        return len(self._episodes)

    def start(self, seed: int | None = None, greedy: bool = False) -> str:
        """Begin an episode; its id is the only way to it."""
        self.evict()
        if len(self._episodes) >= self.limit:
            raise FullError(f"{self.limit} episodes are open, which is the limit; end one or try later")
        episode = self.runner.start(seed=seed, greedy=greedy)
        name = secrets.token_hex(16)
        self._episodes[name] = episode, self._clock()
        self.started += 1
        return name

    def act(self, name: str, observation: Any) -> tuple[Any, int]:
        """An action as JSON has it, and the step that it is for."""
        episode = self._find(name)
        action = episode.act([observation])[0]
        self.decisions += 1
        return _plain(action), int(episode.time[0])

    def observe(self, name: str, reward: Any, next_observation: Any = None) -> tuple[int, bool]:
        """How many steps the episode has had, and whether it is over."""
        episode = self._find(name)
        following = None if next_observation is None else [next_observation]
        if not isinstance(reward, list):
            raise InputError(f"a reward is a list of numbers, one per objective, not {shown(reward)}")
        episode.observe([reward], following)
        steps = int(episode.time[0])
        return steps, steps >= self.runner.horizon

    def end(self, name: str) -> None:
        """Forget an episode."""
        self._find(name)
        del self._episodes[name]

    def evict(self) -> int:
        """Forget the episodes that have been idle for too long; how many they were."""
        oldest = self._clock() - self.idle
        count = 0
        while self._episodes and next(iter(self._episodes.values()))[1] < oldest:
            self._episodes.popitem(last=False)
            count += 1
        self.evicted += count
        return count

    def _find(self, name: str) -> Sessions:
        self.evict()
        if name not in self._episodes:
            raise LostError(
                "there is no such episode; it was never begun, has ended or was idle for too long"
            )
        episode = self._episodes[name][0]
        self._episodes[name] = episode, self._clock()
        self._episodes.move_to_end(name)
        return episode


def _plain(action: Any) -> Any:
    """NumPy's numbers and vectors as Python's; words and tuples of them as they are."""
    return action.tolist() if isinstance(action, np.generic | np.ndarray) else action
