"""The paper's studies by name."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import RenderableType

from aetdice.studies import bodies, fair_taxi, fair_taxi_report, pointmaze
from aetdice.studies.parts import Part

Results = Mapping[str, Mapping[str, Any]]


class Study(NamedTuple):
    """Its parts, in full or quick, and what shows their results: tables, with figures in the folder."""

    full: Callable[[], list[Part]]
    quick: Callable[[], list[Part]]
    show: Callable[[Results, Path], RenderableType]


def _pointmaze(maze: str) -> Study:
    full, quick = pointmaze.PLANS[maze]
    return Study(
        lambda: pointmaze.parts_of(full),
        lambda: pointmaze.parts_of(quick),
        lambda results, folder: pointmaze.report(results, maze, folder),
    )


def _bodies(study: str) -> Study:
    full, quick = bodies.PLANS[study]
    return Study(
        lambda: bodies.parts_of(full),
        lambda: bodies.parts_of(quick),
        lambda results, folder: bodies.report(results, full, folder),
    )


STUDIES: dict[str, Study] = {
    "fair-taxi": Study(
        lambda: fair_taxi.parts_of(fair_taxi.FULL),
        lambda: fair_taxi.parts_of(fair_taxi.QUICK),
        lambda results, folder: fair_taxi_report.report(fair_taxi.merge(results), folder),
    ),
    **{maze: _pointmaze(maze) for maze in pointmaze.PLANS},
    **{study: _bodies(study) for study in bodies.PLANS},
}
