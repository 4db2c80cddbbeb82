"""Small problems that several tests share."""

from dataclasses import dataclass

import numpy as np

from aetdice import Episode, Episodes, TabularMOMDP, enumerate_space
from aetdice.envs import FairTaxi
from aetdice.exact import uniform_policy


@dataclass(frozen=True, eq=False)
class Tables:
    """A MOMDP as dense arrays: what the library reads, and what a test can recompute from."""

    transition: np.ndarray
    reward: np.ndarray
    initial: np.ndarray
    terminal: np.ndarray
    horizon: int

    def momdp(self) -> TabularMOMDP:
        return TabularMOMDP.from_arrays(
            self.transition, self.reward, self.initial, self.horizon, self.terminal
        )


def random_tables(
    seed: int, objectives: int = 2, *, horizon: int = 3, states: int = 3, actions: int = 2, ends: bool = False
) -> Tables:
    """Random transitions to 1 to 3 states each, small integer rewards; `ends` adds a terminal state."""
    rng = np.random.default_rng(seed)
    total = states + ends
    transition = rng.dirichlet(np.ones(total), (states, actions))
    likely = (transition >= 0.3) | (transition == transition.max(axis=2, keepdims=True))
    transition = np.where(likely, transition, 0)
    transition /= transition.sum(axis=2, keepdims=True)
    if ends:
        transition[0, 0] = np.eye(total)[[0, -1]].mean(axis=0)  # so that some episodes do end
        transition = np.concatenate([transition, np.broadcast_to(np.eye(total)[-1], (1, actions, total))])
    return Tables(
        transition=transition,
        reward=rng.integers(-1, 3, (total, actions, total, objectives)).astype(np.float64),
        initial=np.eye(total)[:2].mean(axis=0),
        terminal=np.arange(total) >= states,
        horizon=horizon,
    )


def uniform_episodes(momdp: TabularMOMDP, count: int, seed: int) -> Episodes:
    """What a policy that chooses every action equally often records."""
    return uniform_policy(enumerate_space(momdp)).rollout(count, seed)


GO_ON, QUIT = 0, 1


def chain_episodes(count: int, seed: int, *, horizon: int = 10, quitting: float = 0.3, cutting: float = 0.0):
    """One state without rewards; before each later step a recording may be cut off, at random."""
    rng = np.random.default_rng(seed)
    episodes = []
    for _ in range(count):
        actions = [int(rng.random() < quitting)]
        while actions[-1] == GO_ON and len(actions) < horizon and rng.random() >= cutting:
            actions.append(int(rng.random() < quitting))
        quits, steps = actions[-1] == QUIT, len(actions)
        episodes.append(
            Episode(np.zeros((steps + 1, 1)), np.array(actions), np.zeros((steps, 2)), quits, not quits)
        )
    return Episodes.from_list(episodes)


Cab = tuple[int, int, int]
"""Row, column, and the passenger on board: 0 for nobody, 1 + i for group i."""


def drive(taxi: FairTaxi, cab: Cab, action: int) -> tuple[Cab, tuple[float, ...]]:
    """Fair-Taxi's rules in plain Python: the cab after an action, and the reward."""
    row, column, passenger = cab
    nothing = tuple(0.0 for _ in taxi.origins)
    invalid = tuple(penalty / taxi.scale for penalty in taxi.penalties)
    if action < 4:
        down, right = ((-1, 0), (1, 0), (0, 1), (0, -1))[action]
        inside = range(taxi.size)
        row = row + down if row + down in inside else row
        column = column + right if column + right in inside else column
        return (row, column, passenger), nothing
    if action == 4:
        if passenger or (row, column) not in taxi.origins:
            return cab, invalid
        return (row, column, 1 + taxi.origins.index((row, column))), nothing
    if not passenger or taxi.destinations[passenger - 1] != (row, column):
        return cab, invalid
    gain = tuple(
        delivery / taxi.scale if group == passenger - 1 else 0.0
        for group, delivery in enumerate(taxi.deliveries)
    )
    return (row, column, 0), gain
