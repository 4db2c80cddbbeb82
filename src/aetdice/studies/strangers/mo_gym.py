"""MO-Gymnasium's finite problems, cut short so that time is scarce; returns are brought above zero first."""

import functools
from dataclasses import replace
from typing import Any

from aetdice.objectives import Objective
from aetdice.studies.strangers.finite import finite_problem
from aetdice.studies.strangers.mo_gym_tables import (
    ROOMS,
    SMALL_ROOMS,
    MoGymTable,
    bottles,
    deep_sea,
    fishwood,
    four_rooms,
    fruit_tree,
    gathering,
)
from aetdice.studies.strangers.problem import Extra, Problem, fair_objectives

FAMILY = "MO-Gymnasium"
GYM = Extra("gym", "mo_gymnasium")
"""Which has the numbers of the fruits."""
SUBMARINE = {"level": (0.0, -30.0), "scale": (5.0, 5.0)}
"""Treasure, and time saved of 30 steps."""
GATHERER = {"level": (-1.5, -0.5, -0.5), "scale": 0.5}
"""Alive or not, gold or not, diamond or not: 3 or 1 each."""
COLLECTOR = {"level": -0.5, "scale": 0.5}
CARRIER = {"level": (-30.0, -25.0, -2.0), "scale": (5.0, 25.0, 1.0)}
"""Time saved of 30 steps, bottles delivered, and whether none lies about."""

TABLES: dict[str, tuple[MoGymTable, dict[str, Any], str]] = {
    "deep-sea-treasure": (deep_sea(30), SUBMARINE, "random"),
    "deep-sea-treasure-concave": (deep_sea(30, concave=True), SUBMARINE, "mixed"),
    "resource-gathering": (gathering(50), GATHERER, "mixed"),
    "fishwood": (fishwood(40), {"level": 0.0, "scale": (1.0, 5.0)}, "random"),
    "fishwood-even": (fishwood(30, (0.3, 0.6)), {"level": 0.0, "scale": 2.0}, "mixed"),
    "four-room": (four_rooms(ROOMS, 30), COLLECTOR, "mixed"),
    "four-room-small": (four_rooms(SMALL_ROOMS, 16), COLLECTOR, "mixed"),
    "fruit-tree-5": (fruit_tree(5), {}, "random"),
    "fruit-tree-6": (fruit_tree(6), {}, "random"),
    "breakable-bottles": (bottles(30), CARRIER, "mixed"),
    "unbreakable-bottles": (bottles(30, chance=0.3, unbreakable=True), CARRIER, "mixed"),
    "deep-sea-treasure-short": (deep_sea(20), SUBMARINE, "random"),
    "resource-gathering-short": (gathering(30), GATHERER, "random"),
    "four-room-long": (four_rooms(ROOMS, 36), COLLECTOR, "mixed"),
    "breakable-bottles-short": (bottles(24, chance=0.2), CARRIER, "mixed"),
    "deep-sea-treasure-long": (deep_sea(36), SUBMARINE, "mixed"),
}
"""By name: the table, the units of its returns and the behaviour."""


def problems() -> list[Problem]:
    return [_problem(name) for name in TABLES]


def _problem(name: str) -> Problem:
    table, units, behaviour = TABLES[name]
    objectives: dict[str, Objective] = fair_objectives(**units)
    options = {key: value for key, value in table.options.items() if key != "maze"}
    facts = {"env": table.env, "horizon": table.horizon, "options": options, "units": units}
    made = finite_problem(name, FAMILY, objectives, functools.partial(_table, name), facts, behaviour)
    return replace(made, extra=GYM) if table.env == "fruit-tree-v0" else made


def _table(name: str) -> Any:
    return TABLES[name][0].momdp()
