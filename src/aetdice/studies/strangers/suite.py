"""All problems, and how one is measured: trained with nothing set, beside its reference."""

import functools
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from aetdice.exact.mixtures import best_mixture
from aetdice.learning.run import Run, gap_share
from aetdice.learning.training import train
from aetdice.objectives import in_float64
from aetdice.progress import Progress
from aetdice.studies.parts import Part
from aetdice.studies.strangers import bodies, chance, mazes, mo_gym, reaching, taxis
from aetdice.studies.strangers.problem import Problem, World, seed_of

FAMILIES = (taxis, mazes, mo_gym, chance, reaching, bodies)
LEAST_GAP = 1e-3
"""Relative to 1 + |best|: where the twin is so near to the reference, there is nothing to close."""


class Effort(NamedTuple):
    """How much to do of every problem."""

    seeds: tuple[int, ...]
    share: float = 1.0
    """Of the episodes of its dataset."""


FULL = Effort((0, 1, 2))
QUICK = Effort((0,))


def problems() -> list[Problem]:
    """Those that can be done with what is installed."""
    return [each for each in _listed() if each.extra is None or each.extra.installed]


def left_out() -> list[str]:
    """A sentence for every extra that is missing."""
    missing: dict[str, list[str]] = {}
    for each in _listed():
        if each.extra is not None and not each.extra.installed:
            missing.setdefault(each.extra.name, []).append(each.name)
    return [
        f"Left out: {', '.join(names)}; they need pip install 'aetdice[{extra}]'."
        for extra, names in missing.items()
    ]


def _listed() -> list[Problem]:
    return [each for family in FAMILIES for each in family.problems()]


def part_of(problem: Problem, effort: Effort) -> Part:
    facts = {
        "problem": problem.name,
        "family": problem.family,
        "half": problem.half,
        "made_of": dict(problem.facts),
        "objectives": {label: each.name for label, each in problem.objectives.items()},
        "episodes": episodes_of(problem, effort),
        "data_seed": seed_of(problem.name),
        "seeds": list(effort.seeds),
    }
    return Part(problem.part, facts, functools.partial(measure, problem, effort))


def episodes_of(problem: Problem, effort: Effort) -> int:
    return max(1, round(effort.share * problem.episodes))


def measure(problem: Problem, effort: Effort, folder: Path, progress: Progress) -> dict[str, Any]:
    """Train for all objectives and seeds with nothing set, then score every selected policy and its twin."""
    world = problem.world()
    dataset = world.collect(episodes_of(problem, effort), seed_of(problem.name))
    objectives = list(problem.objectives.values())
    run = train(dataset, objectives, seed=list(effort.seeds), out=folder, progress=progress)
    best = {label: world.reference(each, dataset) for label, each in problem.objectives.items()}
    return {
        "problem": problem.name,
        "family": problem.family,
        "half": problem.half,
        "seconds": run.seconds,
        "cells": cells_of(problem, world, run, best),
    }


def cells_of(problem: Problem, world: World, run: Run, best: dict[str, float]) -> list[dict[str, Any]]:
    """One per objective and seed."""
    cells = []
    for (label, objective), selection in zip(problem.objectives.items(), run.selections, strict=True):
        data = float(in_float64(objective)(run.data_returns))
        recorded = best_mixture(objective, run.data_returns).value
        for index in run.seeds_of(selection):
            member = run.members[index]
            score, twin = (world.score(policy, objective) for policy in member.acting)
            cells.append(
                {
                    "objective": label,
                    "seed": int(member.params["seed"]),
                    "score": score,
                    "twin": twin,
                    "data": data,
                    "recorded": recorded,
                    "best": best[label],
                    "gap": closed(score, twin, best[label]),
                    "gap_from_data": closed(score, data, best[label]),
                    "trusted": member.verdict.trusted,
                    "verdict": member.verdict.words,
                    "params": {name: value for name, value in member.params.items() if name != "objective"},
                    "diagnostics": plain(member.diagnostics),
                }
            )
    return cells


def closed(score: float, from_: float, best: float) -> float | None:
    """The share of the gap that is closed; None where there is next to none."""
    return gap_share(score, from_, best) if best - from_ > LEAST_GAP * (1 + abs(best)) else None


def plain(diagnostics: dict[str, Any]) -> dict[str, Any]:
    """As JSON has them; of arrays their mean."""
    kept: dict[str, Any] = {}
    for name, value in diagnostics.items():
        if isinstance(value, str | bool | int | float) or value is None:
            kept[name] = value
        elif np.size(value):
            kept[name] = float(np.mean(value))
    return kept
