"""`examine`: everything that is wrong or odd about a log, before anything is learned from it."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from aetdice.data.columns import Columns
from aetdice.data.doctor.arrays import array_findings
from aetdice.data.doctor.dynamics import dynamics_findings
from aetdice.data.doctor.findings import Finding, Report
from aetdice.data.doctor.rewards import reward_findings
from aetdice.data.doctor.rows import row_findings
from aetdice.data.doctor.values import value_findings
from aetdice.data.episodes import Episodes
from aetdice.data.minari import minari_ids
from aetdice.data.readers import Place, finished, is_place, locate
from aetdice.data.readers.tables import recording_of
from aetdice.errors import InputError
from aetdice.progress import tell

PHASES = 5
"""Rows, episodes, values, rewards, dynamics."""

__all__ = ["Finding", "Report", "examine", "examine_episodes"]


def examine(
    source: str | Path, columns: Columns | None = None, *, ends: str | None = None, horizon: int | None = None
) -> Report:
    """The report on a file; what no reader can make sense of raises `InputError`.

    Rows of a table are looked at first. Only where they make episodes, their values are.
    """
    columns = columns or Columns()
    minari = not is_place(str(source)) and str(source) in minari_ids()
    place = locate(source, "minari" if minari else None)
    with place.named():
        return _examined(place, columns, ends, horizon)


def _examined(place: Place, columns: Columns, ends: str | None, horizon: int | None) -> Report:
    found: list[Finding] = []
    table = place.table()
    if table is not None:
        try:
            full = columns.guessed(table.names)
        except InputError as error:
            raise InputError(f"{place.name}: {error}") from error
        if table.rows == 0:
            raise InputError(f"{place.name} has no rows")
        found += row_findings(table, full)
    tell("examination", 1, PHASES)
    try:
        # In one expression: a recording that is kept would hold the actions a second time.
        episodes = finished(
            place.read(columns) if table is None else recording_of(table, columns), ends, horizon
        )
    except InputError as error:
        found = found or _refused(place, columns, error)
        return Report(place.name, (), tuple(found))
    return Report(place.name, episodes.notes, (*found, *examine_episodes(episodes, ends is not None)))


def _refused(place: Place, columns: Columns, error: InputError) -> list[Finding]:
    """What a reader stumbled over; of values that are not finite, all of them."""
    path = place.parts[0].path
    try:
        found = array_findings(place.name, place.format.raw(path, columns), columns)
    except (InputError, ValueError, LookupError, TypeError):  # it was refused for another reason
        found = []
    return found or [Finding("refused", "error", "", str(error))]


def examine_episodes(episodes: Episodes, said: bool = True) -> tuple[Finding, ...]:
    """What is odd about episodes that can be learned from; `said` is whether their ends were."""
    found: list[Finding] = []
    looks: tuple[Callable[[Episodes], list[Finding]], ...]
    looks = (value_findings, reward_findings, partial(dynamics_findings, said=said))
    for phase, look in enumerate(looks, start=PHASES - len(looks)):
        tell("examination", phase, PHASES)
        found += look(episodes)
    tell("examination", PHASES, PHASES)
    return tuple(found)
