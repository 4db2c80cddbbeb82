"""A maze in a few lines of text: walls, a start and goals."""

import string
from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Int

from aetdice.errors import InputError

Cell = tuple[int, int]
WALL, FREE, START = "#.S"
GOALS = string.ascii_uppercase[: string.ascii_uppercase.index(START)]
"""Goal letters, in the order of the objectives."""


def read_map(text: str) -> tuple[str, ...]:
    """The rows of a map, which is checked: a rectangle, walled in, one start, goals A, B, … in reach.

    Rows stand on lines of their own or between slashes.
    """
    rows = tuple(row for line in text.replace("/", "\n").splitlines() if (row := line.strip()))
    if not rows:
        raise InputError(
            "the map is empty; draw walls as #, free cells as ., the start as S and goals as A, B, …"
        )
    _check_shape(rows)
    _check_marks(rows)
    distances = steps_from(walls_of(rows), cell_of(rows, START))
    for goal in goals_of(rows):
        if distances[cell_of(rows, goal)] < 0:
            raise InputError(f"the map's goal {goal} cannot be reached from the start S")
    return rows


def walls_of(rows: tuple[str, ...]) -> Bool[np.ndarray, "rows columns"]:
    return np.array([[mark == WALL for mark in row] for row in rows])


def goals_of(rows: tuple[str, ...]) -> str:
    """The letters of the map's goals, in order."""
    return "".join(goal for goal in GOALS if any(goal in row for row in rows))


def cell_of(rows: tuple[str, ...], mark: str) -> Cell:
    """(row, column) of a mark, counted from the top left."""
    return next((i, row.index(mark)) for i, row in enumerate(rows) if mark in row)


def neighbours(cell: Cell) -> Iterator[Cell]:
    """North, south, east and west."""
    row, column = cell
    yield from ((row - 1, column), (row + 1, column), (row, column + 1), (row, column - 1))


def steps_from(walls: Bool[np.ndarray, "rows columns"], cell: Cell) -> Int[np.ndarray, "rows columns"]:
    """The length of the shortest path from a cell to every other, by breadth-first search; -1 for none."""
    distances = np.full(walls.shape, -1)
    distances[cell], frontier = 0, [cell]
    while frontier:
        reached = [there for here in frontier for there in neighbours(here) if not walls[there]]
        steps = distances[frontier[0]] + 1
        frontier = [there for there in dict.fromkeys(reached) if distances[there] < 0]
        for there in frontier:
            distances[there] = steps
    return distances


def _check_shape(rows: tuple[str, ...]) -> None:
    width = len(rows[0])
    for number, row in enumerate(rows):
        if len(row) != width:
            raise InputError(
                f"the map is not a rectangle: row {number} has {len(row)} cells, row 0 has {width}"
            )
        for column, mark in enumerate(row):
            if mark not in (WALL, FREE, START, *GOALS):
                raise InputError(
                    f"unknown character {mark!r} in row {number}, column {column} of the map; "
                    f"known: {WALL} wall, {FREE} free, {START} start, {GOALS[0]} to {GOALS[-1]} goals"
                )
            if mark != WALL and (number in (0, len(rows) - 1) or column in (0, width - 1)):
                raise InputError(
                    f"the map is open at row {number}, column {column}; its border must be all walls ({WALL})"
                )


def _check_marks(rows: tuple[str, ...]) -> None:
    marks = "".join(rows)
    if marks.count(START) != 1:
        raise InputError(f"the map needs exactly one start {START}, not {marks.count(START)}")
    goals = goals_of(rows)
    if not goals:
        raise InputError("the map needs at least one goal, A")
    for expected, goal in zip(GOALS, goals, strict=False):
        if goal != expected:
            raise InputError(
                f"the map has a goal {goal} but no goal {expected}; goals are lettered without gaps"
            )
    for goal in goals:
        if marks.count(goal) != 1:
            raise InputError(f"the map has {marks.count(goal)} goals {goal}; each letter is one goal")
