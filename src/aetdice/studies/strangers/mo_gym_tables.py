"""MO-Gymnasium's finite problems as tables of our own, and the same environments to step beside them."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from aetdice.errors import InputError
from aetdice.exact import TabularMOMDP
from aetdice.studies.strangers.finite import Outcome, Step, table_of

if TYPE_CHECKING:
    import gymnasium

Cell = tuple[int, int]
UP, DOWN, LEFT, RIGHT = (-1, 0), (1, 0), (0, -1), (0, 1)
MOVES = (UP, DOWN, LEFT, RIGHT)
GOLD, DIAMOND, HOME = (0, 2), (1, 4), (4, 2)
ENEMIES = ((1, 2), (0, 3))
FISH, WOOD = 0, 1
CONVEX = (0.7, 8.2, 11.5, 14.0, 15.1, 16.1, 19.6, 20.3, 22.4, 23.7)
CONCAVE = (1.0, 2.0, 3.0, 5.0, 8.0, 16.0, 24.0, 50.0, 74.0, 124.0)
"""Treasures of the deep sea from left to right; the last column has none."""
DEPTHS = (1, 2, 3, 4, 4, 4, 7, 7, 9, 10, 10)
"""The deepest row of every column; there the treasure lies."""
BOTTLES, REWARD = 2, 25.0


@dataclass(frozen=True)
class MoGymTable:
    """One of MO-Gymnasium's environments: its rules, and how to put the real one into a state."""

    env: str
    horizon: int
    """Cut after so many steps; longer ones have larger tables and smaller gaps."""
    step: Step
    actions: int
    start: Any
    place: Callable[[Any, Any], None]
    """Put the unwrapped environment into an observed state."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the environment's class."""

    def momdp(self) -> TabularMOMDP:
        return table_of(self.step, self.actions, self.start, self.horizon)

    def make(self) -> "gymnasium.Env[Any, Any]":
        return gym_extra().make(self.env, max_episode_steps=self.horizon, **self.options)


def gym_extra() -> Any:
    """MO-Gymnasium, or a word on how to get it."""
    try:
        import mo_gymnasium
    except ImportError as error:
        raise InputError("MO-Gymnasium is missing: pip install 'aetdice[gym]'") from error
    return mo_gymnasium


# Deep-sea treasure: the farther, the more valuable, and the longer it takes.


def dive(treasures: tuple[float, ...], state: Cell, action: int) -> list[Outcome]:
    row, column = state[0] + MOVES[action][0], state[1] + MOVES[action][1]
    inside = row >= 0 and 0 <= column < len(DEPTHS) and row <= DEPTHS[column]
    there = (row, column) if inside else state
    found = there[1] < len(treasures) and there[0] == DEPTHS[there[1]]
    return [(1.0, there, (treasures[there[1]] if found else 0.0, -1.0), found)]


def place_diver(env: Any, observation: Any) -> None:
    env.current_state = np.array(observation, np.int32)


def deep_sea(horizon: int, concave: bool = False) -> MoGymTable:
    env = f"deep-sea-treasure{'-concave' if concave else ''}-v0"
    step = functools.partial(dive, CONCAVE if concave else CONVEX)
    return MoGymTable(env, horizon, step, 4, (0, 0), place_diver)


# Resource gathering: walk, collect, come home, do not meet an enemy.


def gather(state: tuple[int, int, int, int], action: int) -> list[Outcome]:
    row, column, gold, diamond = state
    there = (row + MOVES[action][0], column + MOVES[action][1])
    cell = there if min(there) >= 0 and max(there) < 5 else (row, column)
    gold, diamond = int(gold or cell == GOLD), int(diamond or cell == DIAMOND)
    after = (*cell, gold, diamond)
    if cell in ENEMIES:
        return [(0.9, after, (0.0, 0.0, 0.0), False), (0.1, after, (-1.0, 0.0, 0.0), True)]
    home = cell == HOME
    return [(1.0, after, (0.0, float(gold * home), float(diamond * home)), home)]


def place_gatherer(env: Any, observation: Any) -> None:
    env.current_pos = np.array(observation[:2], np.int32)
    env.has_gold, env.has_gem = (int(entry) for entry in observation[2:])


def gathering(horizon: int) -> MoGymTable:
    return MoGymTable("resource-gathering-v0", horizon, gather, 4, (*HOME, 0, 0), place_gatherer)


# Fishwood: one thing at a time.


def fish_or_wood(chances: tuple[float, float], state: tuple[int], action: int) -> list[Outcome]:
    (here,) = state
    found = (1.0, 0.0) if here == FISH else (0.0, 1.0)
    chance = chances[here]
    return [(chance, (action,), found, False), (1 - chance, (action,), (0.0, 0.0), False)]


def place_fisher(env: Any, observation: Any) -> None:
    env._state, env._timestep = np.array(observation, np.int32), 0


def fishwood(horizon: int, chances: tuple[float, float] = (0.1, 0.9)) -> MoGymTable:
    """`chances` of a fish and of wood."""
    options = {"fishproba": chances[FISH], "woodproba": chances[WOOD]}
    step = functools.partial(fish_or_wood, chances)
    return MoGymTable("fishwood-v0", horizon, step, 2, (WOOD,), place_fisher, options)


# Four rooms: three kinds of things to collect on the way to the goal.

ROOMS = (
    "1    2X     G",
    "      X      ",
    "      1      ",
    "             ",
    "      X      ",
    "2    3X      ",
    "XX3 XXXXX 1XX",
    "      X2    3",
    "      X      ",
    "             ",
    "      2      ",
    "      X      ",
    "_     X3    1",
)
"""MO-Gymnasium's own map: walls X, the start _, the goal G, things 1, 2 and 3."""
SMALL_ROOMS = ("1 X 3G", "  2   ", "X XX X", " 2  1 ", "_ X 3 ")
"""One of ours, for the same rules."""
WAYS = (LEFT, UP, RIGHT, DOWN)


def things_of(rooms: tuple[str, ...]) -> list[Cell]:
    """The cells of things, in the order of their flags: column by column."""
    cells = ((r, c) for c in range(len(rooms[0])) for r in range(len(rooms)))
    return [cell for cell in cells if rooms[cell[0]][cell[1]] in "123"]


def start_of(rooms: tuple[str, ...]) -> tuple[int, ...]:
    row = next(r for r, line in enumerate(rooms) if "_" in line)
    return (row, rooms[row].index("_"), *[0] * len(things_of(rooms)))


def collect_things(
    rooms: tuple[str, ...], things: tuple[Cell, ...], state: tuple[int, ...], action: int
) -> list[Outcome]:
    nothing = (0.0, 0.0, 0.0)
    row, column = state[0] + WAYS[action][0], state[1] + WAYS[action][1]
    if not (0 <= row < len(rooms) and 0 <= column < len(rooms[0])) or rooms[row][column] == "X":
        return [(1.0, state, nothing, False)]
    flags, mark = list(state[2:]), rooms[row][column]
    if mark == "G":
        return [(1.0, (row, column, *flags), (1.0, 1.0, 1.0), True)]
    if mark not in "123" or flags[things.index((row, column))]:
        return [(1.0, (row, column, *flags), nothing, False)]
    flags[things.index((row, column))] = 1
    found = tuple(float(kind == mark) for kind in "123")
    return [(1.0, (row, column, *flags), found, False)]


def place_collector(env: Any, observation: Any) -> None:
    row, column, *flags = (int(entry) for entry in observation)
    env.state = ((row, column), tuple(flags))


def four_rooms(rooms: tuple[str, ...], horizon: int) -> MoGymTable:
    step = functools.partial(collect_things, rooms, tuple(things_of(rooms)))
    options = {} if rooms == ROOMS else {"maze": np.array([list(line) for line in rooms])}
    return MoGymTable("four-room-v0", horizon, step, 4, start_of(rooms), place_collector, options)


# The fruit tree: left or right, and a fruit with six nutrients at the end.


@functools.cache
def fruits(depth: int) -> tuple[tuple[float, ...], ...]:
    """MO-Gymnasium's own numbers."""
    gym_extra()
    from mo_gymnasium.envs.fruit_tree.fruit_tree import FRUITS

    return tuple(tuple(map(float, fruit)) for fruit in FRUITS[str(depth)])


def climb(depth: int, state: Cell, action: int) -> list[Outcome]:
    row, place = state[0] + 1, 2 * state[1] + action
    ripe = row == depth
    return [(1.0, (row, place), fruits(depth)[place] if ripe else (0.0,) * 6, ripe)]


def place_climber(env: Any, observation: Any) -> None:
    env.current_state, env.terminal = np.array(observation, np.int32), False


def fruit_tree(depth: int) -> MoGymTable:
    step = functools.partial(climb, depth)
    return MoGymTable("fruit-tree-v0", depth, step, 2, (0, 0), place_climber, {"depth": depth})


# Breakable bottles: who carries two may drop one, and it is broken.


def carry(size: int, chance: float, unbreakable: bool, state: tuple[int, ...], action: int) -> list[Outcome]:
    """State: location, bottles carried, bottles delivered, and those dropped between the two ends."""
    here, carried, delivered, *dropped = state
    before = -float(sum(dropped) > 0)
    if action == 2:
        lying = 0 < here < size - 1 and dropped[here - 1] > 0 and unbreakable
        if carried < BOTTLES and (here == 0 or lying):
            carried += 1
            if here:
                dropped[here - 1] -= 1
        after = -float(sum(dropped) > 0)
        return [(1.0, (here, carried, delivered, *dropped), (-1.0, 0.0, after - before), False)]
    there = here + (1 if action else -1)
    if not 0 <= there < size:
        return [(1.0, state, (-1.0, 0.0, 0.0), False)]
    if carried < BOTTLES or not 0 < here < size - 1:
        return [_arrive(size, 1.0, before, there, carried, delivered, dropped)]
    less = [count + (place == here - 1) for place, count in enumerate(dropped)]
    return [
        _arrive(size, 1 - chance, before, there, carried, delivered, dropped),
        _arrive(size, chance, before, there, carried - 1, delivered, less),
    ]


def _arrive(
    size: int, probability: float, before: float, there: int, carried: int, delivered: int, dropped: list[int]
) -> Outcome:
    more = min(carried, BOTTLES - delivered) if there == size - 1 else 0
    carried, delivered = (0 if more else carried), delivered + more
    reward = (-1.0, REWARD * more, -float(sum(dropped) > 0) - before)
    return probability, (there, carried, delivered, *dropped), reward, more > 0 and delivered == BOTTLES


def place_carrier(env: Any, observation: Any) -> None:
    env.location, env.bottles_carrying, env.bottles_delivered, *dropped = (int(e) for e in observation)
    env.bottles_dropped = dropped


def bottles(horizon: int, chance: float = 0.1, unbreakable: bool = False, size: int = 5) -> MoGymTable:
    step = functools.partial(carry, size, chance, unbreakable)
    start = (size - 1, 0, 0, *[0] * (size - 2))
    options = {"prob_drop": chance, "unbreakable_bottles": unbreakable, "size": size}
    return MoGymTable("breakable-bottles-v0", horizon, step, 3, start, place_carrier, options)
