"""A table of any size as a native store: what is in it is looked at block by block, then written so.

Four passes: the words that columns have; where episodes begin and how they end; what the values of
observations and actions are; and the writing. Each reads the columns that it needs. What is decided is
decided by the functions that decide on tables in memory, and so the arrays are the same.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int, UInt64

from aetdice.data.coding import Coding
from aetdice.data.columns import Columns
from aetdice.data.episodes import Episodes
from aetdice.data.interpretation import (
    Outline,
    Ruling,
    check_rewards,
    coding_of,
    joined_outline,
    layout_of,
    notes_of,
    outline_of,
    rule,
)
from aetdice.data.kinds import (
    Layout,
    coded_actions,
    coded_observations,
    look_at_actions,
    look_at_observations,
)
from aetdice.data.looks import Acted, Looks, Observed
from aetdice.data.readers.arrow import Table
from aetdice.data.readers.base import Recording
from aetdice.data.readers.blocks import Blocks, ahead
from aetdice.data.readers.checks import MEND, beginning_missing
from aetdice.data.readers.stack import Stack
from aetdice.data.readers.tables import Rows, columns_of, recorded
from aetdice.data.readers.vocabulary import text_columns, words_of
from aetdice.data.store import save_episodes
from aetdice.errors import InputError
from aetdice.progress import tell

PASSES = 3
"""Through all rows, but for that through the words."""


class Plan(NamedTuple):
    """A table that was looked at, and what was decided about it."""

    blocks: Blocks
    outline: Outline
    rows: Int[np.ndarray, " n"]
    """Of the table, by episode."""
    ruling: Ruling
    observed: Observed
    acted: Acted
    coding: Coding
    objectives: tuple[str, ...]
    horizon: int | None
    columns: dict[str, Any]
    """As a run remembers them."""
    notes: tuple[str, ...]

    @property
    def size(self) -> tuple[int, int]:
        """How many episodes and steps are kept."""
        return int(self.ruling.kept.sum()), int((self.outline.lengths - self.ruling.cut).sum())

    @property
    def facts(self) -> dict[str, Any]:
        """What files keep beside the arrays."""
        return {"ends": self.ruling.ending.ends, "horizon": self.horizon, "coding": self.coding.record()}


def write_store(path: Path, plan: Plan, **facts: Any) -> None:
    """The episodes as a store, a block of them in memory; `facts` are kept beside the usual ones."""
    episodes = (episode for part in parts_of(plan) for episode in part)
    save_episodes(path, episodes, objectives=plan.objectives, facts={**plan.facts, **facts})


def parts_of(plan: Plan) -> Iterator[Episodes]:
    """All episodes, a block of them after the other."""
    for recording, layout, ruling in _laid_out(plan.blocks, plan.rows, plan.ruling, PASSES):
        if len(layout.lengths):
            yield Episodes(
                observations=coded_observations(recording, layout, plan.observed),
                actions=coded_actions(recording, layout, plan.acted),
                rewards=recording.rewards if layout.steps is None else recording.rewards[layout.steps],
                lengths=layout.lengths,
                terminated=recording.terminated[ruling.kept],
                truncated=recording.truncated[ruling.kept],
                objectives=plan.objectives,
                coding=plan.coding,
                ends=ruling.ending.ends,
            )


def plan_of(stack: Stack, given: Columns, ends: str | None = None, horizon: int | None = None) -> Plan:
    """What is in a table and what becomes of it; `InputError` where no reader would take it."""
    columns = columns_of(stack.table(), given)
    texts = text_columns(stack, _used(columns))
    words = words_of(stack, columns, texts, ahead(stack.blocks(texts))) if texts else {}
    blocks = Blocks(stack, columns, words)
    outline, rows, first = _outline(blocks)
    starts = np.cumsum(rows) - rows
    ruling = rule(
        outline,
        stack.source,
        lambda episode, _: stack.place(int(starts[episode])),
        ends or stack.ends,
        horizon,
    )
    looks = Looks(first)
    for recording, layout, _ in _laid_out(blocks, rows, ruling, PASSES - 1):
        look_at_observations(recording, layout, looks)
        look_at_actions(recording, layout, looks)
    observed, acted = looks.observed(), looks.acted()
    lengths = (outline.lengths - ruling.cut)[ruling.kept]
    return Plan(
        blocks,
        outline,
        rows,
        ruling,
        observed,
        acted,
        coding_of(first, observed, acted),
        first.objectives,
        horizon,
        first.remembered,
        (*first.notes, *notes_of(outline, lengths, observed, acted, ruling)),
    )


def bytes_of_table(stack: Stack, given: Columns) -> int:
    """What the arrays of a table take at least: categories may take more."""
    columns = columns_of(stack.table(), given)
    numbers = 4 * (len(columns.observations) + len(columns.actions)) + 8 * len(columns.rewards)
    return stack.rows * numbers


# The passes.


def _used(columns: Columns) -> list[str]:
    return [*_structure(columns), *columns.observations, *columns.next_observations]


def _structure(columns: Columns) -> list[str]:
    """The columns that tell where episodes begin and end."""
    one = (columns.episode, columns.step, columns.terminated, columns.truncated)
    return [*(name for name in one if name is not None), *columns.rewards, *columns.actions]


def _outline(blocks: Blocks) -> tuple[Outline, Int[np.ndarray, " n"], Recording]:
    """All episodes, their rows in the table, and the first block."""
    outlines: list[Outline] = []
    rows: list[Any] = []
    keys: list[Any] = []
    beginning: tuple[Any, str] | None = None
    first: Recording | None = None
    read = 0
    for table in blocks.whole(_structure(blocks.columns)):
        table = table._replace(before=sum(len(each) for each in rows))
        recording, found = recorded(table, blocks.columns)
        check_rewards(recording)
        beginning = _same_beginning(table, blocks.columns.step, beginning)
        first = first or recording
        outlines.append(outline_of(recording))
        rows.append(found.lasts - found.starts + 1)
        keys.append(_keys(found))
        read += table.rows
        tell("conversion", read, PASSES * blocks.stack.rows)
    assert first is not None  # a table without rows was refused
    counts = np.concatenate(rows)
    if blocks.columns.episode is not None:
        _check_different(blocks, np.concatenate(keys), counts)
    return joined_outline(outlines), counts, first


def _laid_out(
    blocks: Blocks, rows: Int[np.ndarray, " n"], ruling: Ruling, turn: int
) -> Iterator[tuple[Recording, Layout, Ruling]]:
    """Block by block the episodes, which of their rows are used, and what became of their ends."""
    read = (turn - 1) * blocks.stack.rows
    for part, table in blocks.cut(_used(blocks.columns), rows):
        recording, _ = recorded(table, blocks.columns)
        here = ruling._replace(kept=ruling.kept[part], cut=ruling.cut[part])
        yield recording, layout_of(outline_of(recording), here), here
        read += table.rows
        tell("conversion", read, PASSES * blocks.stack.rows)


def _same_beginning(table: Table, name: str | None, known: tuple[Any, str] | None) -> tuple[Any, str] | None:
    """The number of the first step, which is the same in all blocks."""
    if name is None:
        return None
    column = table.load(name)
    if known is not None and column.values[0] != known[0]:
        raise beginning_missing(table, 0, column, known[1])
    return known or (column.values[0], column.shown(0))


def _keys(rows: Rows) -> UInt64[np.ndarray, " n"]:
    """A number for the id of every episode, of words the first bits of a digest."""
    if rows.ids is None:
        return np.zeros(len(rows.starts), np.uint64)
    values = rows.ids.values[rows.starts]
    if rows.ids.categories is not None:
        digests = [
            hashlib.blake2b(str(word).encode(), digest_size=8).digest() for word in rows.ids.categories
        ]
        return np.frombuffer(b"".join(digests), np.uint64)[values]
    if values.dtype.kind == "f":
        return (values.astype(np.float64) + 0.0).view(np.uint64)  # -0 is 0
    return values.astype(np.int64).view(np.uint64)


def _check_different(blocks: Blocks, keys: UInt64[np.ndarray, " n"], rows: Int[np.ndarray, " n"]) -> None:
    """`InputError` where an episode goes on after others, be it blocks later."""
    order = np.argsort(keys, kind="stable")
    again = order[1:][keys[order][1:] == keys[order][:-1]]
    if again.size:
        row, name = int((np.cumsum(rows) - rows)[again.min()]), str(blocks.columns.episode)
        raise InputError(
            f"{blocks.stack.place(row)}: episode {blocks.shown(name, row)} goes on here after other "
            f"episodes; its rows must stand together ({MEND})"
        )
