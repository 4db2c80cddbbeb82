"""Data of any size from wherever they are: in memory, or mapped from a store that is made of them once."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

from aetdice.data.cache import kept, make_kept
from aetdice.data.coding import coding_from
from aetdice.data.columns import Columns
from aetdice.data.conversion import bytes_of_table, plan_of, write_store
from aetdice.data.episodes import Episodes
from aetdice.data.readers import Place, TableFile, finished, read_place
from aetdice.data.readers.files import SPOOLED_BYTES, Csv
from aetdice.data.readers.stack import Stack
from aetdice.data.readers.tables import recording_of
from aetdice.data.store import load_episodes, load_facts
from aetdice.data.stored import STREAMED_BYTES
from aetdice.errors import InputError
from aetdice.locking import alone

VERSION = 1
"""Of how tables are read: what is kept by an older one is made again."""
STORE = "store"


def load_place(
    place: Place, columns: Columns, ends: str | None = None, horizon: int | None = None
) -> Episodes:
    """The episodes of a place; those of a table above 1 GiB stay on disk."""
    if not isinstance(place.format, TableFile):
        return read_place(place, columns, ends, horizon)
    identity = place.identity()
    key = json.dumps([VERSION, identity, place.format.name, columns.record(), ends, horizon])
    if identity is not None and (folder := kept("stores", key)) and (found := _mapped(folder)) is not None:
        return found
    with place.named():
        if isinstance(place.format, Csv) and place.bytes <= SPOOLED_BYTES:
            return read_place(place, columns, ends, horizon)
        stack = place.stack()
        assert stack is not None
        size = bytes_of_table(stack, columns)
        large = size > STREAMED_BYTES
        folder = make_kept("stores", key) if large and identity is not None else None
        if folder is None:
            found = finished(recording_of(stack.table(), columns), ends, horizon)
            words = f"{size / 2**30:.2g} GiB in memory: no cache folder to make a store in"
            return replace(found, notes=(*found.notes, words)) if large else found
        return _made(folder, stack, columns, ends, horizon)


def _made(folder: Path, stack: Stack, columns: Columns, ends: str | None, horizon: int | None) -> Episodes:
    """Of the store in a folder of the cache, which is written unless another process has done so."""
    with alone(folder / ".lock"):
        found = _mapped(folder)
        if found is None:
            # What is there is damaged, or of a process that was killed.
            for left in (folder / STORE, *folder.glob(f".{STORE}.*")):
                shutil.rmtree(left, ignore_errors=True)
            plan = plan_of(stack, columns, ends, horizon)
            write_store(folder / STORE, plan, notes=list(plan.notes), columns=plan.columns)
            found = _mapped(folder)
    assert found is not None
    return found


def _mapped(folder: Path) -> Episodes | None:
    """The episodes of a store of the cache as the table gives them; None where it is not whole."""
    path = folder / STORE
    try:
        episodes, facts = load_episodes(path), load_facts(path)
    except InputError:
        return None
    return replace(
        episodes,
        origin={"columns": facts["columns"]},
        coding=coding_from(facts["coding"]),
        horizon=facts["horizon"],
        ends=facts["ends"],
        notes=(*facts["notes"], f"too large for memory: read from {path}, which was made of it once"),
    )
