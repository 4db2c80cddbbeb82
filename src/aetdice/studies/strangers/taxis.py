"""Fair-Taxi with random layouts: other sizes, groups, horizons, slip and data than the study's."""

import functools
from typing import Any, NamedTuple

import numpy as np

from aetdice.data import Episodes
from aetdice.envs import FairTaxi
from aetdice.envs.fair_taxi import collect_fair_taxi
from aetdice.exact import TabularMOMDP
from aetdice.studies.strangers.finite import finite_problem
from aetdice.studies.strangers.problem import Problem, fair_objectives, seed_of

FAMILY = "Fair-Taxi"


class Layout(NamedTuple):
    """What is not drawn of a layout."""

    size: int
    groups: int
    horizon: int
    slip: float = 0.0
    quality: str = "mixed"


LAYOUTS = {
    "taxi-0": Layout(5, 2, 24),
    "taxi-1": Layout(6, 2, 32),
    "taxi-2": Layout(7, 2, 40),
    "taxi-3": Layout(4, 3, 24),
    "taxi-4": Layout(5, 2, 30, slip=0.1),
    "taxi-5": Layout(4, 2, 20, slip=0.2),
    "taxi-6": Layout(6, 2, 40, quality="shifts"),
    "taxi-7": Layout(5, 2, 32, slip=0.1, quality="shifts"),
    "taxi-8": Layout(6, 2, 28),
    "taxi-10": Layout(5, 3, 30),
    "taxi-13": Layout(5, 2, 28, slip=0.15, quality="shifts"),
    "taxi-18": Layout(6, 2, 34, slip=0.05),
}


def problems() -> list[Problem]:
    return [_problem(name, layout) for name, layout in LAYOUTS.items()]


def _problem(name: str, layout: Layout) -> Problem:
    arguments = draw_layout(layout, seed_of(name))
    taxi = FairTaxi(**arguments)

    def collect(momdp: TabularMOMDP, episodes: int, seed: int) -> Episodes:
        del momdp
        return collect_fair_taxi(taxi, episodes, seed, layout.quality)

    facts = {**arguments, "quality": layout.quality}
    make = functools.partial(TabularMOMDP.from_environment, taxi)
    return finite_problem(name, FAMILY, fair_objectives(), make, facts, collect)


def draw_layout(layout: Layout, seed: int) -> dict[str, Any]:
    """Origins, destinations and start in cells of their own, drawn from a seed."""
    rng = np.random.default_rng(seed)
    cells = rng.permutation(layout.size**2)[: 2 * layout.groups + 1]
    places = [(int(cell) // layout.size, int(cell) % layout.size) for cell in cells]
    return {
        "size": layout.size,
        "origins": tuple(places[: layout.groups]),
        "destinations": tuple(places[layout.groups : -1]),
        "start": places[-1],
        "horizon": layout.horizon,
        "slip": layout.slip,
    }
