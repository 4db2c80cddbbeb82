"""Finite MOMDPs as tables, from arrays, from a function or from an environment."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from aetdice.envs.batched import BatchedEnvironment
from aetdice.envs.environment import Environment, FiniteEnvironment
from aetdice.errors import InputError

Outcomes = Iterable[tuple[float, Hashable, Iterable[float], bool]]
"""(probability, next state, reward vector, whether the episode ends there)."""


@dataclass(frozen=True, eq=False)
class TabularMOMDP:
    """A finite MOMDP with at most K successors per state and action, and a horizon.

    An episode ends on entering a state marked `terminal`, or after `horizon` steps. Successors
    of probability 0 are padding. `observations[s]` is what a policy sees in state s.
    """

    next_state: Int[np.ndarray, "s a k"]
    probability: Float[np.ndarray, "s a k"]
    reward: Float[np.ndarray, "s a k m"]
    initial: Float[np.ndarray, " s"]
    horizon: int
    terminal: Bool[np.ndarray, " s"]
    observations: Shaped[np.ndarray, "s o"]
    objectives: tuple[str, ...]

    def __post_init__(self) -> None:
        _check(self)

    @property
    def states(self) -> int:
        return self.next_state.shape[0]

    @property
    def actions(self) -> int:
        return self.next_state.shape[1]

    @classmethod
    def from_arrays(
        cls,
        transition: Shaped[np.ndarray, "..."],
        reward: Shaped[np.ndarray, "..."],
        initial: Shaped[np.ndarray, "..."] | int,
        horizon: int | float,
        terminal: Shaped[np.ndarray, "..."] | None = None,
        objectives: tuple[str, ...] | None = None,
    ) -> "TabularMOMDP":
        """From arrays.

        - `transition`: probabilities (S, A, S), or next states (S, A) where deterministic
        - `reward`: (S, A, m), or (S, A, S, m) where it depends on the next state
        - `initial`: probabilities (S,), or one state
        - `terminal`: whether each state ends the episode (S,); default: none does
        """
        if int(horizon) != horizon:
            raise InputError(f"the horizon must be a whole number, not {horizon}")
        transition, reward = np.asarray(transition), np.asarray(reward, dtype=np.float64)
        if transition.ndim >= 2 and 0 in transition.shape[:2]:
            raise InputError("a MOMDP needs at least one state and at least one action")
        if transition.ndim == 2 and np.issubdtype(transition.dtype, np.integer):
            next_state, probability = transition[..., None], np.ones((*transition.shape, 1))
        elif transition.ndim == 3 and transition.shape[0] == transition.shape[2]:
            next_state, probability = _successors(transition.astype(np.float64))
        else:
            raise InputError(
                "transition must be probabilities of shape (states, actions, states) or integer next "
                f"states of shape (states, actions), not {transition.dtype} of shape {transition.shape}"
            )
        states, actions = transition.shape[:2]
        if reward.ndim == 3 and reward.shape[:2] == (states, actions):
            rewards = np.repeat(reward[:, :, None], next_state.shape[2], axis=2)
        elif reward.ndim == 4 and reward.shape[:3] == (states, actions, states):
            rewards = np.take_along_axis(reward, np.clip(next_state, 0, states - 1)[..., None], axis=2)
        else:
            raise InputError(
                f"reward must have shape ({states}, {actions}, objectives) or "
                f"({states}, {actions}, {states}, objectives), not {reward.shape}"
            )
        start = np.asarray(initial)
        if start.ndim == 0:
            if start not in range(states):
                raise InputError(f"the initial state {start} is not one of the {states} states")
            start = np.eye(states)[int(start)]
        ends = np.zeros(states, dtype=bool) if terminal is None else np.asarray(terminal, dtype=bool)
        for name, array in (("initial", start), ("terminal", ends)):
            if array.shape != (states,):
                raise InputError(f"{name} needs one entry for each of the {states} states, not {array.shape}")
        return cls(
            next_state=next_state,
            probability=probability,
            reward=rewards,
            initial=start.astype(np.float64),
            horizon=int(horizon),
            terminal=ends,
            observations=np.arange(states)[:, None],
            objectives=tuple(objectives or (f"r{i}" for i in range(reward.shape[-1]))),
        )

    @classmethod
    def from_function(
        cls,
        step: Callable[[Hashable, int], Outcomes],
        actions: int,
        initial: Mapping[Hashable, float],
        horizon: int,
        objectives: tuple[str, ...] | None = None,
    ) -> tuple["TabularMOMDP", list[Hashable]]:
        """From `step(state, action)`, following every state reachable within the horizon.

        Returns the MOMDP and its states in the order of their indices; an ending transition
        leads to a terminal twin of its next state.
        """
        if horizon < 1:
            raise InputError(f"the horizon must be at least 1, not {horizon}")
        index: dict[tuple[Hashable, bool], int] = {}
        queue = [(state, False) for state in initial]
        rows: list[list[list[tuple[float, int, tuple[float, ...]]]]] = []
        depth = [0] * len(queue)
        for position, node in enumerate(queue):
            index[node] = position
        position = 0
        while position < len(queue):
            (state, ended), far = queue[position], depth[position] >= horizon
            row = []
            for action in range(actions):
                outcomes = []
                for probability, successor, reward, ends in () if ended or far else step(state, action):
                    node = (successor, bool(ends))
                    if node not in index:
                        index[node] = len(queue)
                        queue.append(node)
                        depth.append(depth[position] + 1)
                    outcomes.append((float(probability), index[node], tuple(map(float, reward))))
                if not outcomes and not ended and not far:
                    raise InputError(f"step gave no outcome for state {state!r}, action {action}")
                row.append(outcomes)
            rows.append(row)
            position += 1
        return _from_rows(cls, rows, queue, actions, initial, horizon, objectives), [s for s, _ in queue]

    @classmethod
    def from_environment(cls, env: Environment | BatchedEnvironment) -> "TabularMOMDP":
        """Every outcome of every state and action of a JAX environment with numbered states."""
        if not isinstance(env, FiniteEnvironment):
            raise InputError(f"the states of {type(env).__name__} cannot be listed: it has no exact optimum")
        probability, next_state, reward, ends, observations = env.tables()
        possible, terminal = probability > 0, np.zeros(env.states, dtype=bool)
        terminal[next_state[ends & possible]] = True
        if np.any(terminal[next_state[~ends & possible & ~terminal[:, None, None]]]):
            raise InputError(
                "a state is entered both by ending and by going on; give the ending a state of its own"
            )
        return cls(
            next_state=next_state,
            probability=probability,
            reward=reward,
            initial=env.initial,
            horizon=env.horizon,
            terminal=terminal,
            observations=observations,
            objectives=env.objectives,
        )


def _successors(
    transition: Float[np.ndarray, "s a s2"],
) -> tuple[Int[np.ndarray, "s a k"], Float[np.ndarray, "s a k"]]:
    """The possible successors first, K the largest number of them anywhere."""
    width = max(1, int(np.count_nonzero(transition, axis=2).max()))
    order = np.argsort(transition == 0, axis=2, kind="stable")[..., :width]
    return order, np.take_along_axis(transition, order, axis=2)


def _from_rows(
    cls: type[TabularMOMDP],
    rows: list[list[list[tuple[float, int, tuple[float, ...]]]]],
    nodes: list[tuple[Hashable, bool]],
    actions: int,
    initial: Mapping[Hashable, float],
    horizon: int,
    objectives: tuple[str, ...] | None,
) -> TabularMOMDP:
    width = max((len(outcomes) for row in rows for outcomes in row), default=0)
    if width == 0:
        raise InputError("step gave no outcome for any initial state")
    sizes = {len(reward) for row in rows for outcomes in row for _, _, reward in outcomes}
    if len(sizes) != 1:
        raise InputError(f"step gave reward vectors of different lengths: {sorted(sizes)}")
    shape = (len(rows), actions, width)
    next_state, probability = np.zeros(shape, dtype=np.int64), np.zeros(shape)
    reward = np.zeros((*shape, sizes.pop()))
    for s, row in enumerate(rows):
        for a, outcomes in enumerate(row):
            probability[s, a, 0] = 0.0 if outcomes else 1.0
            next_state[s, a] = s
            for k, (p, successor, vector) in enumerate(outcomes):
                probability[s, a, k], next_state[s, a, k], reward[s, a, k] = p, successor, vector
    start = np.zeros(len(rows))
    start[: len(initial)] = list(initial.values())
    return cls(
        next_state=next_state,
        probability=probability,
        reward=reward,
        initial=start,
        horizon=horizon,
        terminal=np.array([ended for _, ended in nodes]),
        observations=np.arange(len(rows))[:, None],
        objectives=tuple(objectives or (f"r{i}" for i in range(reward.shape[-1]))),
    )


def _check(m: TabularMOMDP) -> None:
    if m.horizon < 1:
        raise InputError(f"the horizon must be at least 1, not {m.horizon}")
    if len(set(m.objectives)) != len(m.objectives):
        raise InputError(f"objective names must differ: {', '.join(m.objectives)}")
    if m.initial.shape != (m.states,) or m.terminal.shape != (m.states,):
        raise InputError(f"initial and terminal need one entry for each of the {m.states} states")
    if len(m.objectives) != m.reward.shape[3] or m.reward.shape[3] == 0:
        raise InputError(f"{m.reward.shape[3]} reward columns need as many objective names")
    if np.any((m.next_state < 0) | (m.next_state >= m.states)):
        s, a, k = np.argwhere((m.next_state < 0) | (m.next_state >= m.states))[0]
        raise InputError(f"state {s}, action {a} leads to {m.next_state[s, a, k]}, which is not a state")
    if not np.all(np.isfinite(m.reward)):
        s, a, _, i = np.argwhere(~np.isfinite(m.reward))[0]
        raise InputError(f"the reward of state {s}, action {a}, objective {m.objectives[i]!r} is not finite")
    if np.abs(m.reward).max() > 1e300 / m.horizon:
        raise InputError("the rewards are too large to be summed over the horizon")
    if not np.all(np.isfinite(m.probability)) or np.any(m.probability < 0):
        s, a, _ = np.argwhere(~(m.probability >= 0) | ~np.isfinite(m.probability))[0]
        raise InputError(f"state {s}, action {a} has a negative or non-finite probability")
    total = m.probability.sum(axis=2)
    if np.any(np.abs(total - 1) > 1e-9):
        s, a = np.argwhere(np.abs(total - 1) > 1e-9)[0]
        raise InputError(f"the probabilities of state {s}, action {a} sum to {total[s, a]:.10g}, not to 1")
    if not np.all(m.initial >= 0) or abs(m.initial.sum() - 1) > 1e-9:
        raise InputError(
            f"the initial probabilities sum to {m.initial.sum():.10g}, not to 1, or are negative"
        )
    if np.any(m.terminal & (m.initial > 0)):
        raise InputError(
            f"state {np.flatnonzero(m.terminal & (m.initial > 0))[0]} is both initial and terminal"
        )
