"""Episodes that came as arrays and were refused: which of their values are missing or infinite."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from aetdice.data.columns import Columns, numbered
from aetdice.data.doctor.findings import Finding
from aetdice.data.episodes import Episode

ROLES = ("observations", "actions", "rewards")


class Tally(NamedTuple):
    """How often a column was wrong, and where first."""

    episode: int
    step: int
    width: int
    total: int


def array_findings(source: str, episodes: Iterable[Episode], columns: Columns) -> list[Finding]:
    """Missing and infinite values, column by column, with the first place and the count."""
    tallies: dict[tuple[str, int, str], Tally] = {}
    for number, episode in enumerate(episodes):
        for role in ROLES:
            values = np.asarray(getattr(episode, role))
            if values.dtype.kind != "f" or np.isfinite(values).all():
                continue
            rows = values.reshape(len(values), -1)
            for kind, wrong in (("missing", np.isnan(rows)), ("infinite", np.isinf(rows))):
                for column in np.flatnonzero(wrong.any(axis=0)).tolist():
                    step, count = int(wrong[:, column].argmax()), int(wrong[:, column].sum())
                    first = tallies.get((role, column, kind), Tally(number, step, rows.shape[1], 0))
                    tallies[role, column, kind] = first._replace(total=first.total + count)
    found = []
    for (role, column, kind), tally in tallies.items():
        given = getattr(columns, role)
        names = given if len(given) == tally.width else numbered(role, tally.width)
        place = f"{source} (episode {tally.episode}, step {tally.step})"
        words = f"column {names[column]!r}: {tally.total:,} values are {kind}"
        found.append(Finding(kind, "error", place, words, tally.total))
    return found
